// The choice of the translation model, and the button that swaps languages if a model supports
// the opposite direction.

import { dropdown, make } from './elements.js';
import { languageName, modelOptions } from './languages.js';

export class ModelChoice {
  // `changed()` is called when another model was selected, `swapped()` when both sides must be exchanged.
  constructor({ changed, swapped }) {
    Object.assign(this, { changed, models: [], name: null });
    this.select = make('span', { class: 'model' });
    this.swap = make('button', { type: 'button', class: 'swap', 'aria-label': 'Swap languages', title: 'Swap languages', hidden: true, on: { click: swapped } }, '⇄');
  }

  set(models, name) {
    this.models = models;
    this.name = models.some((model) => model.name === name) ? name : (models[0]?.name ?? null);
    this.draw();
  }

  get model() {
    return this.models.find(({ name }) => name === this.name);
  }

  // The model of the opposite direction.
  get reverse() {
    const { source, target } = this.model ?? {};
    return source && source !== 'und' ? this.models.find((other) => other.source === target && other.target === source) : undefined;
  }

  // A model that supports a source language, if the selected one does not.
  supporting(language) {
    return this.model?.source === language ? undefined : this.models.find(({ source }) => source === language);
  }

  choose(name) {
    this.name = name;
    this.draw();
    this.changed();
  }

  draw() {
    const options = modelOptions(this.models);
    const focused = this.select.contains(document.activeElement);
    this.select.replaceChildren(this.models.length > 1 ? dropdown('Model', options, this.name, (name) => this.choose(name)) : make('span', { class: 'soft' }, options[0]?.text ?? ''));
    if (focused) this.select.querySelector('select')?.focus();
    this.swap.hidden = !this.reverse;
  }

  get sourceName() {
    return languageName(this.model?.source);
  }
}
