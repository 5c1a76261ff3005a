// The explanation of a text: controls above, the selected view below.

import { FIRST, VIEWS, possible, toParameters } from './choice.js';
import { legend } from './colour.js';
import { fileName, saveJson, savePage, savePng, saveSvg } from './download.js';
import { dropdown, make, segmented } from './elements.js';
import { framed } from './frame.js';
import { drawGrid } from './grid.js';
import { drawLines } from './lines.js';
import { drawMatrix } from './matrix.js';
import { ALIGNMENT, KINDS, placeName } from './sides.js';
import { drawTree } from './tree.js';
import { MEAN, kindsOf, layersOf, matrixOf } from './weights.js';
import { drawWordHeads } from './word-heads.js';
import { drawWords } from './words.js';

const DRAW = { words: drawWords, lines: drawLines, colours: drawWordHeads, matrix: drawMatrix, grid: drawGrid, tree: drawTree };
// Pages may have several viewers, and ids must be unique.
let viewers = 0;
const NAMES = { words: 'Words', lines: 'Lines', colours: 'Heads of a word', matrix: 'Matrix', grid: 'All heads', tree: 'Alternatives' };

export class Viewer {
  // `changed(choice)` is called with the reader's choice. `offline()` promises the empty offline page; it is absent on the
  // offline page itself. `share()` copies a link. `views` lists the available views. `heads` switches heads off, if
  // supported: { off, toggle }.
  constructor(root, { changed = () => {}, offline = null, share = null, views = VIEWS, heads = null } = {}) {
    Object.assign(this, { root, changed, offline, share, views, heads, choice: { ...FIRST }, explanations: [], drawn: {} });
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
      // Redraws only on a new width, and only views that the style sheet cannot lay out: the reader's zoom and opened
      // parts are kept.
      if (this.stage.clientWidth !== width) this.drawn = this.drawn.resized?.() ?? this.drawn;
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
    if (choice.view === 'grid') parts.push(segmented('Form', [{ value: 'maps', text: 'Maps' }, { value: 'lines', text: 'Lines' }], choice.form, (form) => this.change({ form })), legend({ full: 1, scale: 'linear' }, 'greatest'));
    if (choice.view !== 'tree' && choice.view !== 'grid' && choice.kind !== 'alignment') {
      const layers = layersOf(output, choice.kind);
      const heads = layers[0]?.heads.length ?? 0;
      const read = (value) => (value === MEAN ? MEAN : Number(value));
      const numbered = (values) => [{ value: MEAN, text: 'average' }, ...values.map((value) => ({ value, text: `${value}` }))];
      const isOneLayer = choice.view === 'colours';
      const layerOptions = numbered(layers.map(({ layer }) => layer)).slice(isOneLayer ? 1 : 0);
      const layer = isOneLayer && choice.layer === MEAN ? layers.at(-1)?.layer : choice.layer;
      // A single option needs no control.
      if (layers.length > 1) parts.push(dropdown('Layer', layerOptions, layer, (layer) => this.change({ layer })));
      if (heads > 1 && !isOneLayer) parts.push(dropdown('Head', numbered(Array.from({ length: heads }, (_, head) => head)), choice.head, (value) => this.change({ head: read(value) })));
      if (hasWords(explanation)) parts.push(segmented('Level', [{ value: 'word', text: 'Words' }, { value: 'token', text: 'Tokens' }], choice.level, (level) => this.change({ level })));
      const matrix = matrixOf(explanation, choice);
      if (matrix && choice.view !== 'words' && choice.view !== 'colours') parts.push(legend(matrix));
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
    const context = { explanation, output, choice, matrix, heads: this.heads, say: (text) => this.say(text), change: (part) => this.change(part) };
    this.drawn = DRAW[choice.view](stage, context);
  }

  // Saves the picture of the view, with its title and legend.
  savePicture(save) {
    const scene = this.drawn.scene?.();
    if (!scene) {
      this.say('This view has no picture.');
      return;
    }
    const { choice, explanation } = this;
    const isTree = choice.view === 'tree';
    const layer = choice.view === 'colours' && choice.layer === MEAN ? layersOf(explanation.outputs[choice.output], choice.kind).at(-1).layer : choice.layer;
    const place = { grid: () => `all heads, ${KINDS[choice.kind]?.attention} of the ${KINDS[choice.kind]?.layer}`, colours: () => placeName({ kind: choice.kind, layer }), tree: () => 'Alternatives of the beam search' };
    const title = place[choice.view]?.() ?? placeName(choice);
    const scale = ['matrix', 'lines'].includes(choice.view) && choice.kind !== 'alignment' ? matrixOf(explanation, choice) : null;
    const lines = [title, explanation.source.text, ...(isTree ? [] : [explanation.outputs[choice.output].text])];
    save(fileName(explanation.source.text), framed(scene, { lines, scale, key: this.drawn.key?.() ?? [] }));
  }

  makeFiles() {
    const name = () => fileName(this.explanation.source.text);
    const entry = (text, action) => make('button', { type: 'button', 'data-file': text, on: { click: () => { menu.open = false; action(); } } }, text);
    const menu = make('details', { class: 'menu' }, make('summary', {}, 'Download'),
      make('div', { class: 'entries' },
        entry('SVG', () => this.savePicture(saveSvg)),
        entry('PNG', () => this.savePicture(savePng)),
        entry('JSON', () => saveJson(name(), this.explanations)),
        this.offline ? entry('HTML', async () => savePage(name(), await this.offline(), this.explanations, String(new URLSearchParams(toParameters(this.choice))))) : null));
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
