// Translates while typing. A request is sent when typing pauses; an older response never replaces a newer
// one. Stale output is dimmed.

import { translate, translateStreaming } from './api.js';
import { make } from './elements.js';
import { ModelChoice } from './model-choice.js';
import { writeOutput } from './output-text.js';
import { Retry } from './retry.js';
import { isCopied } from './share.js';
import { SourceField } from './source-field.js';

const REST_MS = 250;
// Longer texts are streamed.
const LONG = 160;
const BEAM = 4;
const TOKENS = 6;

export class Composer {
  // `found(explanations)` is called with every response; `edited()` when text or model changed; `picked(i)`
  // when a sentence was clicked; `nBest()` returns the number of outputs to request; `stale(isStale)` is
  // called when the output becomes stale.
  constructor({ suffix = '', found, edited, picked, nBest, stale }) {
    Object.assign(this, { found, edited, picked, nBest, stale, timer: null, running: null, asked: '', answers: new Map(), begins: new Map(), without: new Set() });
    // Distinct accessible names if the page has two of these.
    const named = (name) => (suffix ? `${name}, second` : name);
    this.models = new ModelChoice({ changed: () => this.restart(), swapped: () => this.swap() });
    this.hint = make('button', { type: 'button', class: 'chip', hidden: true });
    this.source = new SourceField({
      id: `text${suffix}`, label: named('Text'), placeholder: 'Type a sentence', describedBy: `status${suffix}`,
      edited: () => { this.begins.clear(); this.restart(REST_MS); },
      detected: (language) => this.suggest(language),
    });
    this.source.language.after(this.hint);
    this.output = make('div', { id: `output${suffix}`, class: 'output', dir: 'auto', role: 'region', 'aria-label': named('Translation'), 'aria-live': 'polite' });
    this.copy = make('button', { type: 'button', id: `copy${suffix}`, hidden: true }, 'Copy');
    this.forced = make('div', { class: 'pane-foot forced' });
    this.status = make('p', { id: `status${suffix}`, class: 'status', role: 'status' });
    this.element = make('section', { class: 'composer panel', 'aria-label': named('Text and translation') },
      make('div', { class: 'pane' }, make('div', { class: 'pane-top' }, this.models.select, this.models.swap), this.source.field, this.source.foot),
      make('div', { class: 'pane' }, make('div', { class: 'pane-top' }, make('h2', {}, 'Translation'), this.copy), this.output, this.forced),
      this.status);
    this.retry = new Retry(() => { this.asked = ''; this.ask(); }, (sentence) => this.say(sentence, true));
    this.copy.addEventListener('click', async () => this.say((await isCopied(this.output.textContent)) ? 'Copied.' : 'The browser did not allow copying the text.'));
  }

  get text() {
    return this.source.field;
  }

  get model() {
    return this.models.name;
  }

  setModels(models, chosen) {
    this.models.set(models, chosen);
    this.describe();
  }

  describe() {
    this.text.setAttribute('lang', this.models.model?.source ?? '');
    this.output.setAttribute('lang', this.models.model?.target ?? '');
  }

  setText(text) {
    this.source.set(text);
    this.ask();
  }

  swap() {
    const [text, reverse] = [this.output.textContent, this.models.reverse];
    if (!reverse) return;
    this.begins.clear();
    this.source.set(text || this.text.value);
    this.models.choose(reverse.name);
  }

  // Another model supports the detected language.
  suggest(language) {
    const other = language && this.models.supporting(language);
    this.hint.hidden = !other;
    if (!other) return;
    this.hint.textContent = 'Translate from it';
    this.hint.onclick = () => this.models.choose(other.name);
  }

  say(sentence, isBad = false) {
    this.status.classList.toggle('bad', isBad);
    this.status.textContent = sentence;
  }

  // Text, model or options changed: the output is stale.
  restart(rest = 0) {
    this.describe();
    this.edited();
    this.retry.stop();
    if (this.output.textContent) this.dim(true);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), rest);
  }

  dim(isStale) {
    this.output.classList.toggle('stale', isStale);
    this.stale(isStale);
  }

  get request() {
    return { text: this.text.value, n_best: this.nBest(), beam: BEAM, alternatives: TOKENS, attention: 'packed', ...(this.model ? { model: this.model } : {}) };
  }

  // Requests the current text, unless it is that of the last request.
  async ask() {
    clearTimeout(this.timer);
    const request = this.request;
    const key = JSON.stringify([request, ...this.begins, ...this.without]);
    if (key === this.asked) return;
    this.asked = key;
    this.retry.stop();
    this.running?.abort();
    this.running = null;
    if (request.text.trim() === '') {
      this.output.removeAttribute('aria-busy');
      this.show([], '');
      return;
    }
    const running = new AbortController();
    this.running = running;
    this.output.setAttribute('aria-busy', 'true');
    let answer = null;
    try {
      answer = await this.answer(request, running);
    } catch (error) {
      if (this.running !== running || error.name === 'AbortError') return;
      this.output.removeAttribute('aria-busy');
      this.dim(this.output.textContent !== '');
      this.retry.failed(error);
      return;
    }
    if (this.running !== running) return;
    this.retry.succeeded();
    this.output.removeAttribute('aria-busy');
    this.show(answer.sentences, `${Math.max(1, Math.round(answer.milliseconds))} ms`);
  }

  // Translates all sentences; those with a prefix are translated again, separately.
  async answer(request, running) {
    const changes = this.without.size > 0 ? { without_heads: [...this.without] } : {};
    const whole = await this.once({ ...request, ...changes }, running);
    const sentences = [...whole.results[0].sentences];
    for (const [place, prefix] of this.begins) {
      const text = sentences[place]?.explanation?.source.text;
      if (!text) continue;
      const { results: [{ sentences: [alone] }] } = await this.once({ ...request, ...changes, text, prefix }, running);
      sentences[place] = { ...sentences[place], explanation: alone.explanation };
    }
    this.whole = this.without.size > 0 ? (await this.once(request, running)).results[0].text : null;
    const { queue_ms: queue, compute_ms: compute } = whole.timings;
    return { sentences, milliseconds: queue + compute };
  }

  // Responses to the current text are cached: returning to one needs no request.
  async once(request, running) {
    const key = JSON.stringify(request);
    if (this.answered !== this.text.value) this.answers.clear();
    this.answered = this.text.value;
    if (!this.answers.has(key)) {
      const isLong = request.text.length > LONG;
      const answer = isLong ? await translateStreaming(request, (part) => this.showPart(part, running), running.signal) : await translate(request, running.signal);
      this.answers.set(key, answer);
    }
    return this.answers.get(key);
  }

  showPart({ sentence, text }, running) {
    if (this.running !== running) return;
    this.parts ??= [];
    this.parts[sentence] = text;
    this.output.replaceChildren(make('span', { class: 'soft' }, this.parts.filter(Boolean).join(' ')));
  }

  show(sentences, status) {
    this.parts = null;
    const explanations = writeOutput(this.output, sentences, { picked: this.picked, chosen: (place, prefix) => this.begin(place, prefix) });
    this.copy.hidden = explanations.length === 0;
    this.say(status);
    this.drawForced();
    this.dim(false);
    this.found(explanations);
  }

  // Sets the prefix of a sentence's translation.
  begin(place, prefix) {
    if (prefix === null) this.begins.delete(place);
    else this.begins.set(place, prefix);
    this.restart();
  }

  // Toggles a head.
  toggle(name) {
    if (!this.without.delete(name)) this.without.add(name);
    this.restart();
  }

  drawForced() {
    const begins = [...this.begins].map(([place, prefix]) => make('button', { type: 'button', class: 'chip', title: 'Let the model choose again', on: { click: () => this.begin(place, null) } }, make('bdi', {}, `${prefix} …`), ' ×'));
    const heads = this.without.size === 0 ? [] : [
      make('button', { type: 'button', class: 'chip', on: { click: () => { this.without.clear(); this.restart(); } } }, `Without ${this.without.size} ${this.without.size === 1 ? 'head' : 'heads'} ×`),
      make('p', { class: 'with-all' }, this.whole === this.output.textContent ? 'The translation is the same as with all heads.' : make('span', {}, 'With all heads: ', make('bdi', {}, this.whole ?? ''))),
    ];
    this.forced.replaceChildren(...begins, ...heads);
  }
}
