// The translation page: one desk, or two with the same view.

import { characterLimit, takes } from './api.js';
import { Desk } from './desk.js';
import { make } from './elements.js';
import { copyAddress, writeAddress } from './share.js';

export class TranslatePage {
  constructor(root) {
    this.root = root;
    this.models = [];
    this.first = this.desk('');
    this.second = null;
    this.desks = make('div', { class: 'desks' }, this.first.element);
    this.toggle = make('button', { type: 'button', class: 'compare', 'aria-pressed': 'false', on: { click: () => { this.compare(this.second === null ? {} : null); this.remember(); } } }, 'Compare');
    root.append(this.desks,
      make('p', { class: 'invitation' }, 'Every translation comes with its attention weights, in every layer and head, and with the alternatives of the beam search.'));
    this.first.composer.models.select.after(this.toggle);
  }

  desk(suffix) {
    return new Desk({ suffix, changed: (desk) => this.changed(desk), share: copyAddress });
  }

  get all() {
    return this.second ? [this.first, this.second] : [this.first];
  }

  // Both desks show the same view, layer and head.
  changed(desk) {
    for (const other of this.all) {
      if (other === desk) continue;
      const { sentence, output } = other.viewer.choice;
      other.viewer.choice = { ...desk.viewer.choice, sentence, output };
      other.viewer.update();
      other.composer.ask();
    }
    this.remember();
  }

  remember() {
    if (!this.root.hidden) writeAddress({ desks: this.all.map(({ state }) => state), choice: this.first.viewer.choice });
  }

  // Adds a second desk, by default with the text of the first and another model; null removes it.
  compare(state) {
    this.second?.element.remove();
    this.second = null;
    if (state) {
      const { text, model } = this.first.state;
      this.second = this.desk('-2');
      this.desks.append(this.second.element);
      this.second.viewer.choice = { ...this.first.viewer.choice, output: 0 };
      this.second.setModels(this.models, state.model ?? this.models.find(({ name, source }) => name !== model && source === this.first.composer.models.model?.source)?.name ?? model);
      this.prepare(this.second);
      this.second.follow({ ...state, text: state.text ?? text });
    }
    this.desks.classList.toggle('two', this.second !== null);
    this.toggle.setAttribute('aria-pressed', String(this.second !== null));
    this.first.viewer.update();
  }

  async prepare(desk) {
    const [limit, canSwitch] = await Promise.all([characterLimit(), takes('/v1/translate', 'without_heads')]).catch(() => [null, false]);
    desk.composer.source.setLimit(limit);
    if (canSwitch) desk.allowSwitches();
    desk.viewer.update();
  }

  // Applies texts, models and choices from the URL.
  follow(models, address) {
    this.models = models;
    this.first.viewer.choice = address.choice;
    this.first.setModels(models, address.model);
    this.prepare(this.first);
    if (address.text) this.first.follow(address);
    if (address.lost) this.first.composer.say('The text was too long for this link: paste it here.', true);
    if (address.second || this.second) this.compare(address.second);
  }

  // The previous text.
  enter() {
    this.remember();
  }

  draw() {
    for (const { viewer } of this.all) viewer.update();
  }

  focus() {
    this.first.composer.text.focus();
  }

  say(sentence, isBad) {
    this.first.composer.say(sentence, isBad);
  }
}
