// Translate as you type. A request leaves when the typing rests; an older answer never replaces a newer one.

import { dropdown, make } from './elements.js';
import { translate, translateStreaming } from './api.js';
import { isCopied } from './share.js';

const REST_MS = 250;
// Longer texts are shown while they are translated.
const LONG = 160;
const ALTERNATIVES = 4;

export class Composer {
  // `found(explanations)` is called with every response; `edited()` when text or model changed; `picked(i)` when a sentence
  // was clicked on; `alternatives()` says whether more than the best output is wanted.
  constructor({ found, edited, picked, alternatives }) {
    Object.assign(this, { found, edited, picked, alternatives, model: null, timer: null, running: null, asked: '' });
    this.text = document.getElementById('text');
    this.output = document.getElementById('output');
    this.status = document.getElementById('status');
    this.copy = document.getElementById('copy');
    this.text.addEventListener('input', () => {
      this.fit();
      this.edited();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), REST_MS);
    });
    this.copy.addEventListener('click', async () => {
      this.status.textContent = (await isCopied(this.output.textContent)) ? 'Copied.' : 'The browser did not let the text be copied.';
    });
  }

  setModels(models, chosen) {
    this.model = models.some(({ name }) => name === chosen) ? chosen : (models[0]?.name ?? null);
    const described = () => {
      const model = models.find(({ name }) => name === this.model);
      this.text.setAttribute('lang', model?.source ?? '');
      this.output.setAttribute('lang', model?.target ?? '');
    };
    described();
    const options = models.map(({ name, source, target }) => ({ value: name, text: source && target ? `${languageName(source)} → ${languageName(target)}` : name }));
    const twice = options.some(({ text }, i) => options.findIndex((other) => other.text === text) !== i);
    if (twice) models.forEach(({ name }, i) => { options[i].text += ` (${name})`; });
    const choose = (value) => {
      this.model = value;
      described();
      this.edited();
      this.ask();
    };
    document.getElementById('model').replaceChildren(models.length > 1 ? dropdown('Model', options, this.model, choose) : make('span', { class: 'soft' }, options[0]?.text ?? ''));
  }

  setText(text) {
    this.text.value = text;
    this.fit();
    this.ask();
  }

  // The field is as high as its text.
  fit() {
    this.text.style.setProperty('height', 'auto');
    this.text.style.setProperty('height', `${this.text.scrollHeight}px`);
  }

  // Asks for what is in the field now, unless that is what was asked last.
  async ask() {
    clearTimeout(this.timer);
    const text = this.text.value;
    const request = { text, n_best: this.alternatives() ? ALTERNATIVES : 1, beam: ALTERNATIVES, attention: 'packed' };
    if (this.model) request.model = this.model;
    const key = JSON.stringify(request);
    if (key === this.asked) return;
    this.asked = key;
    this.running?.abort();
    this.running = null;
    if (text.trim() === '') {
      this.output.removeAttribute('aria-busy');
      this.show([], '');
      return;
    }
    const running = new AbortController();
    this.running = running;
    this.output.setAttribute('aria-busy', 'true');
    try {
      const answer = text.length > LONG
        ? await translateStreaming(request, (part) => this.showPart(part, running), running.signal)
        : await translate(request, running.signal);
      if (this.running !== running) return;
      const { queue_ms: queue, compute_ms: compute } = answer.timings;
      this.show(answer.results[0].sentences, `${Math.max(1, Math.round(queue + compute))} ms`);
    } catch (error) {
      if (this.running !== running || error.name === 'AbortError') return;
      this.asked = '';
      this.status.classList.add('bad');
      this.status.textContent = error instanceof TypeError ? 'The server cannot be reached.' : error.message;
    } finally {
      if (this.running === running) this.output.removeAttribute('aria-busy');
    }
  }

  showPart({ sentence, text }, running) {
    if (this.running !== running) return;
    this.parts ??= [];
    this.parts[sentence] = text;
    this.output.replaceChildren(make('span', { class: 'soft' }, this.parts.filter(Boolean).join(' ')));
  }

  show(sentences, status) {
    this.parts = null;
    const explanations = [];
    this.output.replaceChildren();
    for (const { before, explanation, after } of sentences) {
      const said = explanation?.outputs[0];
      this.output.append(before ?? '');
      if (said) {
        const index = explanations.length;
        this.output.append(make('span', { 'data-sentence': index, on: { click: () => this.picked(index) } }, said.text));
        explanations.push(explanation);
      } else {
        // What the model has nothing to say about stays as it is.
        this.output.append(explanation?.source.text ?? '');
      }
      this.output.append(after ?? '');
    }
    this.copy.hidden = explanations.length === 0;
    this.status.classList.remove('bad');
    this.status.textContent = status;
    this.found(explanations);
  }
}

function languageName(code) {
  try {
    return new Intl.DisplayNames(['en'], { type: 'language' }).of(code);
  } catch {
    return code;
  }
}
