// The attention of one sentence at every validation.

import { ramp, theme } from './colour.js';
import { make, roving } from './elements.js';
import { smallMap } from './grid.js';
import { Viewer } from './viewer.js';

// The maximum number of small maps.
const MAX_MAPS = 12;

export class AttentionHistory {
  constructor() {
    this.strip = make('div', { class: 'strip', role: 'group', 'aria-label': 'Steps' });
    this.note = make('p', { class: 'soft' });
    this.viewing = make('section', { class: 'panel viewer', 'aria-label': 'Attention at one step' });
    this.viewer = new Viewer(this.viewing, { views: ['words', 'lines', 'matrix'] });
    this.viewer.choice.view = 'matrix';
    this.element = make('section', { class: 'over-time', hidden: true }, make('div', { class: 'over-time-head' }, make('h2', {}, 'Attention over time'), this.note), this.strip, this.viewing);
    this.records = [];
    // The selected step; null follows the run.
    this.step = null;
  }

  show(records) {
    this.records = records;
    this.element.hidden = records.length === 0;
    if (records.length > 0) this.draw();
  }

  draw() {
    const chosen = this.records.find(({ step }) => step === this.step) ?? this.records.at(-1);
    const shades = ramp(theme());
    const buttons = spread(this.records, MAX_MAPS).map((record) => make('button', {
      type: 'button',
      class: 'tile',
      'aria-pressed': String(record.step === chosen.step),
      'aria-label': `Step ${record.step.toLocaleString('en')}`,
      on: { click: () => this.choose(record.step) },
    }, smallMap(Float32Array.from(record.weights.flat()), sizeOf(record), shades), make('span', { 'aria-hidden': 'true' }, record.step.toLocaleString('en'))));
    this.strip.replaceChildren(...buttons);
    roving(this.strip, buttons);
    this.note.textContent = `${chosen.layer}, step ${chosen.step.toLocaleString('en')}`;
    this.viewer.show([explained(chosen)]);
  }

  choose(step) {
    this.step = step === this.records.at(-1).step ? null : step;
    this.draw();
    this.strip.querySelector('[aria-pressed=true]')?.focus();
  }
}

function sizeOf({ rows, columns }) {
  return { queries: rows.length, keys: columns.length };
}

// Evenly spaced records from the first to the last.
function spread(records, most) {
  if (records.length <= most) return records;
  return Array.from({ length: most }, (_, i) => records[Math.round((i * (records.length - 1)) / (most - 1))]);
}

// A record as an explanation for the viewer: one layer with one head.
function explained({ layer: name, rows, columns, weights }) {
  const tokens = (pieces) => pieces.map((piece) => ({ piece, word: null }));
  const text = (pieces) => pieces.filter((piece) => !/^<\w+>$/.test(piece)).join('').replaceAll('▁', ' ').trim();
  const layer = { layer: name, kind: 'cross', queries: rows.length, keys: columns.length, heads: [weights] };
  const output = { text: text(rows), score: 0, log_probability: 0, tokens: tokens(rows), alignment: [], attention: [layer] };
  return { source: { text: text(columns), tokens: tokens(columns) }, outputs: [output] };
}
