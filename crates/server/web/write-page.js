// The page of a language model: streams the continuation of a prompt. Every token then shows its probability
// and its alternatives; the text can be continued from any of these.

import { nameOf, showAlternatives } from './alternatives.js';
import { characterLimit, generateStreaming } from './api.js';
import { dropdown, make, roving } from './elements.js';
import { exampleButtons, examplesOf } from './examples.js';
import { percent, short } from './numbers.js';
import { Retry } from './retry.js';
import { writeAddress } from './share.js';
import { SourceField } from './source-field.js';
import { spelled, textOf } from './weights.js';

const ALTERNATIVES = 8;
const DEFAULTS = { temperature: '0.8', tokens: '60', seed: '1' };

export class WritePage {
  constructor(root) {
    Object.assign(this, { root, models: [], model: null, running: null });
    this.source = new SourceField({ id: 'prompt', label: 'Beginning of the text', placeholder: 'Begin a text', describedBy: 'write-status', edited: () => { this.dim(this.output.textContent !== ''); this.remember(); this.invite(); } });
    this.select = make('span', { class: 'model' });
    this.output = make('div', { id: 'written', class: 'output', dir: 'auto', role: 'region', 'aria-label': 'Continuation', 'aria-live': 'polite' });
    this.status = make('p', { id: 'write-status', class: 'status', role: 'status' });
    this.examples = make('div');
    this.fields = {
      temperature: make('input', { id: 'temperature', type: 'range', min: '0', max: '2', step: '0.1' }),
      tokens: make('input', { id: 'tokens', type: 'number', min: '1', max: '1000', step: '1' }),
      seed: make('input', { id: 'seed', type: 'number', min: '0', step: '1' }),
    };
    this.heat = make('output', { for: 'temperature' });
    for (const field of Object.values(this.fields)) field.addEventListener('input', () => { this.drawHeat(); this.remember(); });
    this.go = make('button', { type: 'submit', class: 'primary' }, 'Continue');
    this.form = make('form', { class: 'settings', 'aria-label': 'How to continue' },
      make('label', { for: 'temperature' }, 'Temperature'), this.fields.temperature, this.heat,
      make('label', { for: 'tokens' }, 'Tokens'), this.fields.tokens,
      make('label', { for: 'seed' }, 'Seed'), this.fields.seed, this.go);
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.running) this.stop();
      else this.write(this.source.value);
    });
    root.append(make('h1', { class: 'unseen' }, 'Write with a language model'),
      make('section', { class: 'composer panel', 'aria-label': 'Beginning and continuation' },
        make('div', { class: 'pane' }, make('div', { class: 'pane-top' }, this.select), this.source.field, this.source.foot),
        make('div', { class: 'pane' }, make('div', { class: 'pane-top' }, make('h2', {}, 'Continuation')), this.output),
        this.form, this.status),
      this.examples,
      make('p', { class: 'invitation' }, 'Darker tokens were less probable. Click a token to see its alternatives, and continue from one of them. At temperature 0 the model always takes the most probable token.'));
    this.set(DEFAULTS);
    this.retry = new Retry(() => this.write(this.asked), (sentence) => this.say(sentence, true));
  }

  set(settings) {
    for (const [name, field] of Object.entries(this.fields)) field.value = settings[name] ?? DEFAULTS[name];
    this.drawHeat();
  }

  drawHeat() {
    const { value } = this.fields.temperature;
    this.heat.textContent = Number(value) === 0 ? 'greedy' : value;
  }

  follow(models, { text, model, settings = {}, lost }) {
    this.models = models;
    this.model = models.some(({ name }) => name === model) ? model : (models[0]?.name ?? null);
    const choose = (name) => { this.model = name; this.remember(); };
    this.select.replaceChildren(models.length > 1 ? dropdown('Model', models.map(({ name }) => ({ value: name, text: name })), this.model, choose) : make('span', { class: 'soft' }, this.model ?? ''));
    characterLimit().then((limit) => this.source.setLimit(limit), () => {});
    this.set(settings);
    this.source.set(text);
    this.invite();
    if (lost) this.say('The text was too long for this link: paste it here.', true);
    else if (text) this.write(text);
  }

  enter(models) {
    if (this.models.length === 0) this.follow(models, { text: '' });
    this.remember();
    this.focus();
  }

  focus() {
    this.source.field.focus();
  }

  get settings() {
    return Object.fromEntries(Object.entries(this.fields).map(([name, { value }]) => [name, value]));
  }

  remember() {
    const changed = Object.fromEntries(Object.entries(this.settings).filter(([name, value]) => value !== DEFAULTS[name]));
    writeAddress({ page: 'write', desks: [{ text: this.source.value, model: this.models.length > 1 ? this.model : null }], settings: changed });
  }

  invite() {
    const model = this.models.find(({ name }) => name === this.model);
    this.examples.replaceChildren(this.source.value === '' ? exampleButtons(examplesOf(model), (text) => { this.source.set(text); this.remember(); this.invite(); this.write(text); }) : '');
  }

  say(sentence, isBad = false) {
    this.status.classList.toggle('bad', isBad);
    this.status.textContent = sentence;
  }

  dim(isStale) {
    this.output.classList.toggle('stale', isStale);
  }

  stop() {
    this.running?.abort();
    this.running = null;
    this.go.textContent = 'Continue';
    this.output.removeAttribute('aria-busy');
  }

  // Continues a prompt, which may be longer than the text in the field if alternatives were chosen.
  async write(prompt) {
    this.retry.stop();
    this.stop();
    this.asked = prompt;
    const running = new AbortController();
    this.running = running;
    this.go.textContent = 'Stop';
    this.output.setAttribute('aria-busy', 'true');
    this.dim(this.output.textContent !== '');
    const { temperature, tokens, seed } = this.settings;
    const request = { prompt, model: this.model, temperature: Number(temperature), tokens: Number(tokens), seed: Number(seed), alternatives: ALTERNATIVES };
    const started = performance.now();
    try {
      const { results: [found] } = await generateStreaming(request, ({ text }) => {
        if (this.running !== running) return;
        this.dim(false);
        this.output.replaceChildren(make('span', {}, text));
      }, running.signal);
      if (this.running !== running) return;
      this.retry.succeeded();
      this.show(prompt, found);
      this.say(`${found.tokens.toLocaleString('en')} tokens · perplexity ${short(Math.exp(-found.log_probability / Math.max(1, found.tokens)))} · ${Math.max(1, Math.round(performance.now() - started))} ms`);
      this.stop();
    } catch (error) {
      if (this.running !== running || error.name === 'AbortError') return;
      this.stop();
      this.dim(this.output.textContent !== '');
      this.retry.failed(error);
    }
  }

  show(prompt, { text, pieces }) {
    this.dim(false);
    if (!pieces) {
      this.output.replaceChildren(text);
      return;
    }
    const written = pieces.filter(({ piece }) => piece !== '<eos>');
    const buttons = written.map((token, i) => {
      const probability = Math.exp(token.log_probability);
      // A leading space of a token is text, where a line may break.
      const button = make('button', { type: 'button', class: 'output-word token', title: percent(probability), 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': `${nameOf(token.piece)}, ${percent(probability)}` }, spelledHere(token.piece));
      button.style.setProperty('--share', (1 - probability).toFixed(3));
      button.addEventListener('click', () => showAlternatives(button, token, (piece) => this.write(continued(prompt, written.slice(0, i), piece))));
      return button;
    });
    // Spaces and line breaks are placed between the buttons, so that lines can break there.
    const parts = buttons.flatMap((button, i) => [written[i].piece.startsWith('▁') ? ' ' : '', button, textOf(written[i].piece).includes('\n') ? '\n' : '']);
    const body = make('span', {}, make('span', { class: 'prompt' }, prompt), parts);
    this.output.replaceChildren(body);
    if (buttons.length > 0) roving(body, buttons);
  }
}

// The text of a token, with visible signs for white space.
function spelledHere(piece) {
  if (textOf(piece).includes('\n')) return textOf(piece).trimStart().replaceAll('\n', '') || '⏎';
  return spelled(piece) || '␣';
}

// The text up to a token, with an alternative in its place.
function continued(prompt, before, piece) {
  const text = textOf([...before.map((token) => token.piece), piece].join(''));
  // A leading space is not added after an existing space.
  return prompt === '' || /\s$/u.test(prompt) ? prompt + text.replace(/^ /, '') : prompt + text;
}
