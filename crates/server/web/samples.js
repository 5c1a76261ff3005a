// Sample outputs over the steps, with a slider for the step.

import { make } from './elements.js';

export class Samples {
  constructor() {
    this.slider = make('input', { type: 'range', min: '0', step: '1', id: 'sample-step' });
    this.step = make('output', { for: 'sample-step' });
    this.list = make('ol', { class: 'samples' });
    this.element = make('section', { class: 'over-time', hidden: true },
      make('div', { class: 'over-time-head' }, make('h2', {}, 'Samples over time'), make('label', { for: 'sample-step' }, 'Step'), this.slider, this.step),
      this.list);
    this.records = [];
    this.slider.addEventListener('input', () => this.draw());
  }

  // A slider at its end stays there, so that a live run is followed.
  show(records) {
    const following = this.slider.value === this.slider.max || this.records.length === 0;
    this.records = records.filter(({ samples }) => samples?.length > 0);
    this.element.hidden = this.records.length === 0;
    if (this.records.length === 0) return;
    const last = this.records.length - 1;
    const at = following ? last : Math.min(Number(this.slider.value), last);
    this.slider.max = String(last);
    this.slider.value = String(at);
    this.draw();
  }

  draw() {
    const record = this.records[Number(this.slider.value)];
    if (!record) return;
    const step = record.step.toLocaleString('en');
    this.step.textContent = step;
    this.slider.setAttribute('aria-valuetext', `step ${step}`);
    this.list.replaceChildren(...record.samples.map(({ source, reference, output }) => make('li', { class: 'panel' },
      make('p', { class: 'source', dir: 'auto' }, source),
      make('p', { class: output === reference ? 'sample-output right' : 'sample-output', dir: 'auto' }, output || '(nothing)'),
      reference && output !== reference ? make('p', { class: 'reference' }, 'meant: ', make('bdi', {}, reference)) : null)));
  }
}
