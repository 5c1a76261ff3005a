// The field for the text: as high as its text, with what it is written in and how long it is below it.

import { detect } from './api.js';
import { make } from './elements.js';
import { languageName } from './languages.js';

const REST_MS = 400;
// A language that is found in fewer characters is a guess.
const ENOUGH = 3;
// What the detector is less sure of than this, out of 100, is not worth a word.
const SURE = 40;

export class SourceField {
  // `edited()` is called with every change by the reader; `detected(code)` when the language is known.
  constructor({ id, label, placeholder, describedBy, edited, detected = () => {} }) {
    Object.assign(this, { edited, detected, limit: null, timer: null, asked: 0 });
    this.field = make('textarea', { id, rows: '4', spellcheck: 'false', dir: 'auto', placeholder, 'aria-label': label, 'aria-describedby': describedBy });
    this.language = make('span', { class: 'detected' });
    this.count = make('span', { class: 'count' });
    this.foot = make('div', { class: 'pane-foot' }, this.language, this.count);
    this.field.addEventListener('input', () => {
      this.changed();
      this.edited();
    });
    this.changed();
  }

  get value() {
    return this.field.value;
  }

  set(text) {
    this.field.value = text;
    this.changed();
  }

  setLimit(characters) {
    this.limit = characters;
    this.changed();
  }

  changed() {
    this.field.style.setProperty('height', 'auto');
    if (this.field.scrollHeight) this.field.style.setProperty('height', `${this.field.scrollHeight}px`);
    const length = [...this.value].length;
    this.count.textContent = length === 0 ? '' : `${length.toLocaleString('en')}${this.limit ? ` / ${this.limit.toLocaleString('en')}` : ''}`;
    this.count.title = 'characters';
    this.count.classList.toggle('bad', this.limit !== null && length > this.limit);
    clearTimeout(this.timer);
    if (this.value.trim().length < ENOUGH) this.say(null);
    else this.timer = setTimeout(() => this.detect(), REST_MS);
  }

  // A guess that failed is no news: the translation says what is wrong with the server.
  async detect() {
    const asked = ++this.asked;
    const [found] = await detect(this.value.slice(0, 2000)).catch(() => []);
    if (asked === this.asked) this.say(found && found.confidence >= SURE ? found.language : null);
  }

  say(code) {
    this.asked++;
    this.language.replaceChildren(code ? `${languageName(code)} detected` : '');
    this.detected(code);
  }
}
