// Training runs: curves, and what became of a few sentences over the steps. Follows a run while it trains.

import { attentionHistory, metrics, report, reportAddress, reportIsFetched, runs } from './api.js';
import { chart } from './chart.js';
import { dropdown, make } from './elements.js';
import { AttentionHistory } from './attention-history.js';
import { short } from './numbers.js';
import { Samples } from './samples.js';

const POLL_MS = 2000;

// Names that belong into one picture; every other number gets a picture of its own.
const CHARTS = [
  { title: 'Loss', names: ['loss', 'valid_loss'], best: 'low' },
  { title: 'BLEU', names: ['valid_bleu'], best: 'high' },
  { title: 'Accuracy', names: ['accuracy', 'valid_accuracy'], best: 'high' },
  { title: 'Perplexity', names: ['valid_perplexity'], best: 'low' },
  { title: 'Learning rate', names: ['learning_rate'], best: null },
  { title: 'Gradient norm', names: ['gradient_norm'], best: null },
  { title: 'Tokens per second', names: ['tokens_per_second'], best: null },
];

export class RunsPage {
  constructor(root) {
    Object.assign(this, { root, name: null, records: [], attention: [], timer: null, visit: 0 });
    this.head = make('div', { class: 'run-head' });
    this.charts = make('section', { class: 'charts', 'aria-label': 'Curves' });
    this.samples = new Samples();
    this.history = new AttentionHistory();
    root.append(this.head, this.charts, this.samples.element, this.history.element);
  }

  async open(name) {
    const visit = ++this.visit;
    try {
      const names = await runs();
      if (visit !== this.visit) return;
      this.name = names.includes(name) ? name : (names[0] ?? null);
      this.names = names;
      this.records = [];
      this.attention = [];
      this.draw();
      if (this.name) await this.follow(visit);
    } catch (error) {
      this.head.replaceChildren(make('p', { class: 'hint' }, error.message));
    }
  }

  async saveReport(event) {
    if (!reportIsFetched()) return;
    event.preventDefault();
    try {
      const address = URL.createObjectURL(await report(this.name));
      make('a', { href: address, download: `${this.name}-report.html` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      this.head.querySelector('.run-note').textContent = error.message;
    }
  }

  close() {
    this.visit++;
    clearTimeout(this.timer);
  }

  // Asks for new records again and again until the page is left.
  async follow(visit) {
    clearTimeout(this.timer);
    let state = 'live';
    try {
      const after = (records) => records.at(-1)?.step ?? 0;
      const [records, attention] = await Promise.all([metrics(this.name, after(this.records)), attentionHistory(this.name, after(this.attention))]);
      if (visit !== this.visit) return;
      this.records.push(...records);
      this.attention.push(...attention);
      if (records.length + attention.length > 0) this.draw();
    } catch (error) {
      state = error instanceof TypeError ? 'The server cannot be reached; trying again.' : error.message;
    }
    if (visit !== this.visit) return;
    this.root.dataset.state = state === 'live' ? 'live' : 'waiting';
    const note = this.head.querySelector('.run-note');
    if (note) note.textContent = state === 'live' ? this.note() : state;
    this.timer = setTimeout(() => this.follow(visit), POLL_MS);
  }

  note() {
    const last = this.records.at(-1);
    return last ? `step ${last.step.toLocaleString('en')} · ${duration(last.seconds)} of training` : 'no records yet';
  }

  draw() {
    if (!this.names) return;
    if (!this.name) {
      this.head.replaceChildren(make('h1', {}, 'Training'), make('p', { class: 'hint' }, 'No runs are served here. `heedful train --dashboard` shows one while it trains.'));
      return;
    }
    const choose = (name) => { location.hash = new URLSearchParams({ runs: name }); };
    this.head.replaceChildren(
      make('h1', {}, this.name),
      make('p', { class: 'run-note' }, this.note()),
      ...(this.names.length > 1 ? [dropdown('Run', this.names.map((value) => ({ value, text: value })), this.name, choose)] : []),
      make('a', { href: reportAddress(this.name), on: { click: (event) => this.saveReport(event) } }, 'Report'),
    );
    this.charts.replaceChildren(...pictures(this.records));
    this.samples.show(this.records);
    this.history.show(this.attention);
  }
}

function pictures(records) {
  const known = new Set(['step', 'seconds', 'samples', ...CHARTS.flatMap(({ names }) => names)]);
  const others = [...new Set(records.flatMap(Object.keys))].filter((name) => !known.has(name));
  const groups = [...CHARTS, ...others.map((name) => ({ title: name.replaceAll('_', ' '), names: [name], best: null }))];
  return groups.flatMap(({ title, names, best }) => {
    const series = names
      .map((name) => ({ name, points: records.filter((record) => name in record).map((record) => [record.step, record[name]]) }))
      .filter(({ points }) => points.length > 0);
    if (series.length === 0) return [];
    const role = (name) => (names.length === 1 ? '' : name.startsWith('valid') ? 'validation ' : 'training ');
    const key = make('span', { class: 'key' }, series.map(({ name, points }, i) => make('span', { class: `curve-${i + 1}` }, role(name) + short(points.at(-1)[1]))));
    return [make('figure', { class: 'card' }, make('figcaption', {}, make('h2', {}, title), key), chart(title, series, best))];
  });
}

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
