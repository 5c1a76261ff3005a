// The explanation of a text: choices above, the chosen view below.

import { FIRST, VIEWS, possible } from './choice.js';
import { legend } from './colour.js';
import { fileName, saveJson, savePage, savePng, saveSvg } from './download.js';
import { dropdown, make, segmented } from './elements.js';
import { drawGrid } from './grid.js';
import { drawLines, linesScene } from './lines.js';
import { drawMatrix } from './matrix.js';
import { ALIGNMENT, KINDS } from './sides.js';
import { drawTree } from './tree.js';
import { MEAN, kindsOf, layersOf, matrixOf } from './weights.js';
import { drawWords } from './words.js';

const DRAW = { words: drawWords, lines: drawLines, matrix: drawMatrix, grid: drawGrid, tree: drawTree };
// Pages may hold several viewers, and an id must be one element's own.
let viewers = 0;
const NAMES = { words: 'Words', lines: 'Lines', matrix: 'Matrix', grid: 'Heads', tree: 'Alternatives' };

export class Viewer {
  // `changed(choice)` is called with the reader's choice. `offline()` promises the empty offline page; without it the
  // page is one already. `share()` copies an address. `views` are those that make sense.
  constructor(root, { changed = () => {}, offline = null, share = null, views = VIEWS } = {}) {
    Object.assign(this, { root, changed, offline, share, views, choice: { ...FIRST }, explanations: [], drawn: {} });
    this.tabs = make('div', { class: 'tabs', role: 'tablist', 'aria-label': 'View' });
    this.controls = make('div', { class: 'controls' });
    this.stage = make('div', { class: 'stage', role: 'tabpanel', id: `stage-${++viewers}` });
    this.live = make('p', { class: 'unseen', 'aria-live': 'polite' });
    this.files = this.makeFiles();
    root.append(make('h2', { class: 'unseen' }, 'Attention'), make('div', { class: 'bar-above' }, this.tabs, this.files), this.controls, this.stage, this.live);
    root.hidden = true;
    this.makeTabs();
    let width = 0;
    new ResizeObserver(() => {
      // Only a new width asks for a new layout, and only of views that the style sheet cannot lay out: what a reader has
      // opened or zoomed stays.
      if (this.stage.clientWidth !== width) this.drawn.resized?.();
      width = this.stage.clientWidth;
    }).observe(root);
  }

  // Shows explanations; the choice is kept as far as they support it.
  show(explanations, choice = this.choice) {
    this.explanations = explanations.filter(({ outputs }) => outputs.length > 0);
    this.root.hidden = this.explanations.length === 0;
    this.choice = { ...choice };
    this.update();
  }

  change(part) {
    this.choice = { ...this.choice, ...part };
    this.update();
    this.changed(this.choice);
  }

  say(text) {
    this.live.textContent = text;
  }

  update() {
    if (this.explanations.length === 0) return;
    this.choice = possible(this.choice, this.explanations);
    for (const tab of this.tabs.children) {
      const chosen = tab.dataset.value === this.choice.view;
      tab.setAttribute('aria-selected', String(chosen));
      tab.setAttribute('tabindex', chosen ? '0' : '-1');
      // On a phone not all tabs fit; the page itself must not move.
      if (chosen) this.tabs.scrollLeft = Math.max(0, tab.offsetLeft - this.tabs.offsetLeft - 60);
    }
    this.updateControls();
    this.draw();
  }

  get explanation() {
    return this.explanations[this.choice.sentence];
  }

  makeTabs() {
    for (const view of this.views) {
      this.tabs.append(make('button', { type: 'button', role: 'tab', 'data-value': view, 'aria-controls': this.stage.id, on: { click: () => this.change({ view }) } }, NAMES[view]));
    }
    this.tabs.addEventListener('keydown', (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      const { length } = this.views;
      this.change({ view: this.views[(this.views.indexOf(this.choice.view) + move + length) % length] });
      this.tabs.querySelector('[aria-selected=true]').focus();
    });
  }

  updateControls() {
    const { choice, explanation } = this;
    const output = explanation.outputs[choice.output];
    const focused = this.controls.contains(document.activeElement) ? keyOf(document.activeElement) : null;
    const parts = [];
    if (this.explanations.length > 1) {
      const options = this.explanations.map(({ source }, value) => ({ value, text: `${value + 1}. ${[...source.text].slice(0, 40).join('')}` }));
      parts.push(dropdown('Sentence', options, choice.sentence, (value) => this.change({ sentence: Number(value), output: 0 })));
    }
    if (choice.view !== 'tree') {
      const kinds = kindsOf(output);
      const options = Object.entries(KINDS).filter(([value]) => value !== 'pooling' || kinds.includes(value)).map(([value, { text, hint }]) => ({ value, text, hint, disabled: !kinds.includes(value) }));
      if (choice.view === 'lines') options.push({ value: 'alignment', text: ALIGNMENT.text, hint: ALIGNMENT.hint, disabled: output.alignment.length === 0 });
      if (kinds.length > 1 || output.alignment.length > 0) parts.push(segmented('Attention', options, choice.kind, (kind) => this.change({ kind })));
    }
    if (choice.view !== 'tree' && choice.view !== 'grid' && choice.kind !== 'alignment') {
      const layers = layersOf(output, choice.kind);
      const heads = layers[0]?.heads.length ?? 0;
      const read = (value) => (value === MEAN ? MEAN : Number(value));
      const numbered = (values) => [{ value: MEAN, text: 'average' }, ...values.map((value) => ({ value, text: `${value}` }))];
      // A single option needs no control.
      if (layers.length > 1) parts.push(dropdown('Layer', numbered(layers.map(({ layer }) => layer)), choice.layer, (value) => this.change({ layer: read(value) })));
      if (heads > 1) parts.push(dropdown('Head', numbered(Array.from({ length: heads }, (_, head) => head)), choice.head, (value) => this.change({ head: read(value) })));
      if (hasWords(explanation)) parts.push(segmented('Level', [{ value: 'word', text: 'Words' }, { value: 'token', text: 'Tokens' }], choice.level, (level) => this.change({ level })));
      const matrix = matrixOf(explanation, choice);
      if (matrix && choice.view !== 'words') parts.push(legend(matrix));
    }
    this.controls.replaceChildren(...parts);
    if (focused) [...this.controls.querySelectorAll('button, select')].find((element) => keyOf(element) === focused)?.focus();
  }

  draw() {
    if (this.explanations.length === 0) return;
    const { choice, explanation, stage } = this;
    const output = explanation.outputs[choice.output];
    stage.replaceChildren();
    stage.setAttribute('aria-label', NAMES[choice.view]);
    const matrix = choice.view === 'tree' ? null : matrixOf(explanation, choice);
    if (!matrix && choice.view !== 'tree') {
      stage.append(make('p', { class: 'hint' }, 'This model has no attention weights to show.'));
      this.drawn = {};
      return;
    }
    const context = { explanation, output, choice, matrix, say: (text) => this.say(text), change: (part) => this.change(part) };
    this.drawn = DRAW[choice.view](stage, context);
  }

  // Saves the picture of the view; running text has none of its own and is drawn as lines.
  savePicture(save) {
    const matrix = this.drawn.scene ? null : matrixOf(this.explanation, this.choice);
    const scene = this.drawn.scene?.() ?? (matrix && linesScene(matrix, this.stage.clientWidth));
    if (scene) save(fileName(this.explanation.source.text), scene);
    else this.say('There is no picture here.');
  }

  makeFiles() {
    const name = () => fileName(this.explanation.source.text);
    const entry = (text, action) => make('button', { type: 'button', 'data-file': text, on: { click: () => { menu.open = false; action(); } } }, text);
    const menu = make('details', { class: 'menu' }, make('summary', {}, 'Download'),
      make('div', { class: 'entries' },
        entry('SVG', () => this.savePicture(saveSvg)),
        entry('PNG', () => this.savePicture(savePng)),
        entry('JSON', () => saveJson(name(), this.explanations)),
        this.offline ? entry('HTML', async () => savePage(name(), await this.offline(), this.explanations)) : null));
    menu.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      menu.open = false;
      menu.firstElementChild.focus();
    });
    document.addEventListener('click', (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    const share = this.share && make('button', { type: 'button', class: 'share', on: { click: async () => this.say(await this.share()) } }, 'Copy link');
    return make('div', { class: 'files' }, share, menu);
  }
}

// Whether any token belongs to a word.
function hasWords({ source, outputs }) {
  return [source, ...outputs].some(({ tokens }) => tokens.some(({ word }) => word !== null));
}

// Identifies a control, so that its replacement can be found.
function keyOf(element) {
  return `${element.closest('[aria-label]')?.getAttribute('aria-label') ?? element.closest('label')?.firstElementChild.textContent} ${element.dataset.value ?? ''}`;
}
