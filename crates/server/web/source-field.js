// The text field, which grows with its text, with the detected language and the length below it.

import { detect } from './api.js';
import { make } from './elements.js';
import { languageName } from './languages.js';

const REST_MS = 400;
// Detection in fewer characters is unreliable.
const MIN_CHARACTERS = 3;
// The minimum confidence of the detector, out of 100.
const MIN_CONFIDENCE = 40;

export class SourceField {
  // `edited()` is called on every edit; `detected(code)` when the language was detected.
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
    if (this.value.trim().length < MIN_CHARACTERS) this.say(null);
    else this.timer = setTimeout(() => this.detect(), REST_MS);
  }

  // A failed detection is not shown: the translation reports server errors.
  async detect() {
    const asked = ++this.asked;
    const [found] = await detect(this.value.slice(0, 2000)).catch(() => []);
    if (asked === this.asked) this.say(found && found.confidence >= MIN_CONFIDENCE ? found.language : null);
  }

  say(code) {
    this.asked++;
    this.language.replaceChildren(code ? `${languageName(code)} detected` : '');
    this.detected(code);
  }
}
