// The classification page: bars for the labels, and words shaded by their attention.

import { characterLimit, classify } from './api.js';
import { dropdown, make } from './elements.js';
import { exampleButtons, examplesOf } from './examples.js';
import { percent } from './numbers.js';
import { Retry } from './retry.js';
import { writeAddress } from './share.js';
import { SourceField } from './source-field.js';

const REST_MS = 250;
// The maximum number of listed labels.
const LISTED = 12;

export class ClassifyPage {
  constructor(root) {
    Object.assign(this, { root, models: [], model: null, timer: null, running: null });
    this.source = new SourceField({ id: 'classify-text', label: 'Text to classify', placeholder: 'Type a text', describedBy: 'classify-status', edited: () => this.restart(REST_MS) });
    this.select = make('span', { class: 'model' });
    this.labels = make('ol', { class: 'bars labels' });
    this.result = make('div', { class: 'result', role: 'region', 'aria-label': 'Labels', 'aria-live': 'polite' }, this.labels);
    this.words = make('p', { class: 'running', dir: 'auto' });
    this.attended = make('section', { class: 'panel viewer attended', 'aria-label': 'What decided', hidden: true },
      make('h2', {}, 'What the model attended to'), this.words, make('p', { class: 'hint' }, 'The stronger the shade, the more of the attention of the whole text a word received; hover or tap one for the number.'));
    this.status = make('p', { id: 'classify-status', class: 'status', role: 'status' });
    this.examples = make('div');
    root.append(make('h1', { class: 'unseen' }, 'Classify, and see what decided'),
      make('section', { class: 'composer panel', 'aria-label': 'Text and labels' },
        make('div', { class: 'pane' }, make('div', { class: 'pane-top' }, this.select), this.source.field, this.source.foot),
        make('div', { class: 'pane' }, make('div', { class: 'pane-top' }, make('h2', {}, 'Labels')), this.result),
        this.status),
      this.examples, this.attended);
    this.retry = new Retry(() => this.ask(), (sentence) => this.say(sentence, true));
  }

  follow(models, { text, model, lost }) {
    this.models = models;
    this.model = models.some(({ name }) => name === model) ? model : (models[0]?.name ?? null);
    this.drawModels();
    characterLimit().then((limit) => this.source.setLimit(limit), () => {});
    if (lost) this.say('The text was too long for this link: paste it here.', true);
    this.source.set(text);
    this.invite();
    if (text) this.ask();
  }

  enter(models) {
    if (this.models.length === 0) this.follow(models, { text: '' });
    this.remember();
    this.focus();
  }

  focus() {
    this.source.field.focus();
  }

  remember() {
    writeAddress({ page: 'classify', desks: [{ text: this.source.value, model: this.models.length > 1 ? this.model : null }] });
  }

  drawModels() {
    const choose = (name) => { this.model = name; this.restart(); };
    this.select.replaceChildren(this.models.length > 1 ? dropdown('Model', this.models.map(({ name }) => ({ value: name, text: name })), this.model, choose) : make('span', { class: 'soft' }, this.model ?? ''));
  }

  invite() {
    const model = this.models.find(({ name }) => name === this.model);
    this.examples.replaceChildren(this.source.value === '' ? exampleButtons(examplesOf(model), (text) => { this.source.set(text); this.restart(); }) : '');
  }

  restart(rest = 0) {
    this.remember();
    this.invite();
    this.retry.stop();
    this.dim(this.labels.childElementCount > 0);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), rest);
  }

  dim(isStale) {
    for (const part of [this.result, this.attended]) part.classList.toggle('stale', isStale);
  }

  say(sentence, isBad = false) {
    this.status.classList.toggle('bad', isBad);
    this.status.textContent = sentence;
  }

  async ask() {
    clearTimeout(this.timer);
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    const text = this.source.value;
    if (text.trim() === '') {
      this.show(null, '');
      return;
    }
    this.result.setAttribute('aria-busy', 'true');
    try {
      const { results: [found], timings } = await classify({ text, model: this.model }, running.signal);
      if (this.running !== running) return;
      this.retry.succeeded();
      this.show(found, `${Math.max(1, Math.round(timings.total_ms))} ms`);
    } catch (error) {
      if (this.running !== running || error.name === 'AbortError') return;
      this.dim(this.labels.childElementCount > 0);
      this.retry.failed(error);
    } finally {
      if (this.running === running) this.result.removeAttribute('aria-busy');
    }
  }

  show(found, status) {
    this.dim(false);
    this.say(status);
    const labels = Object.entries(found?.probabilities ?? {}).sort((a, b) => b[1] - a[1]).slice(0, LISTED);
    this.labels.replaceChildren(...labels.map(([label, probability], i) => {
      const bar = make('span', { class: 'bar', 'aria-hidden': 'true' });
      bar.style.setProperty('--share', probability.toFixed(3));
      return make('li', { class: i === 0 ? 'first' : null }, make('span', { class: 'name', dir: 'auto' }, label), bar, make('span', { class: 'value' }, percent(probability)));
    }));
    this.attended.hidden = !found;
    const words = found?.words ?? [];
    const full = Math.max(1e-6, ...words.map(({ attention }) => attention));
    this.words.replaceChildren(...words.flatMap(({ word, attention }, i) => {
      const shaded = make('span', { class: 'word', title: percent(attention) }, word, make('span', { class: 'unseen' }, ` ${percent(attention)}`));
      shaded.style.setProperty('--share', (attention / full).toFixed(3));
      return i > 0 ? [' ', shaded] : [shaded];
    }));
  }
}
