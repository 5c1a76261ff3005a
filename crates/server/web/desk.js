// A text, its translation and the attention viewer. A page has one desk, or two side by side.

import { emptyPage } from './api.js';
import { Composer } from './composer.js';
import { exampleButtons, examplesOf } from './examples.js';
import { make } from './elements.js';
import { Viewer } from './viewer.js';

const ALTERNATIVES = 4;

export class Desk {
  // `changed()` is called when text, model or choice changed; `share()` copies a link and returns a message.
  constructor({ suffix = '', changed, share }) {
    this.stage = make('section', { id: `viewer${suffix}`, class: 'panel viewer', 'aria-label': suffix ? 'Attention, second' : 'Attention' });
    this.examples = make('div');
    this.viewer = new Viewer(this.stage, {
      changed: () => {
        changed(this);
        // The tree and the list of alternatives need more than the best output.
        this.composer.ask();
      },
      offline: emptyPage,
      share: async () => {
        const message = await share();
        this.composer.say(message);
        return message;
      },
    });
    this.composer = new Composer({
      suffix,
      found: (explanations) => { this.viewer.show(explanations); this.invite(); },
      edited: () => {
        // The selected alternative belonged to another text.
        this.viewer.choice.output = 0;
        this.invite();
        changed(this);
      },
      picked: (sentence) => this.viewer.change({ sentence, output: 0 }),
      nBest: () => (this.viewer.choice.view === 'tree' || this.viewer.choice.output > 0 ? ALTERNATIVES : 1),
      stale: (isStale) => this.stage.classList.toggle('stale', isStale),
    });
    this.element = make('div', { class: 'desk' }, this.composer.element, this.examples, this.stage);
  }

  // Enables switching heads off, if the server supports it.
  allowSwitches() {
    this.viewer.heads = { off: this.composer.without, toggle: (name) => this.composer.toggle(name) };
  }

  setModels(models, name) {
    this.composer.setModels(models, name);
    this.invite();
  }

  // Shows examples while there is no text.
  invite() {
    const { text, models } = this.composer;
    this.examples.replaceChildren(text.value === '' ? exampleButtons(examplesOf(models.model), (example) => { this.composer.setText(example); this.composer.edited(); text.focus(); }) : '');
  }

  get state() {
    return { text: this.composer.text.value, model: this.composer.model, begins: [...this.composer.begins], without: [...this.composer.without] };
  }

  follow({ text, begins = [], without = [] }) {
    const { composer } = this;
    composer.begins = new Map(begins);
    composer.without.clear();
    for (const name of without) composer.without.add(name);
    composer.setText(text);
  }
}
