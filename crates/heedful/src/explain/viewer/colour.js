// One hue of increasing strength over the background, which reads the same with every kind of colour vision.

import { make } from './elements.js';
import { percent } from './numbers.js';

// The resolved colours of the current theme, for canvases and files.
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return { panel: read('panel'), ink: read('ink'), soft: read('soft'), edge: read('edge'), heat: read('heat'), cold: read('cold'), tint: read('tint') };
}

// 256 steps from the background to the full colour, as [r, g, b].
export function ramp({ cold, heat }) {
  const [from, to] = [channels(cold), channels(heat)];
  return Array.from({ length: 256 }, (_, i) => from.map((value, c) => Math.round(value + ((to[c] - value) * i) / 255)));
}

// The same for the background of words.
export function tints() {
  const { panel, tint } = theme();
  return ramp({ cold: panel, heat: tint });
}

// The step, out of 256, of a share of the full colour.
export function step(share) {
  return Math.round(share * 255);
}

export function css([r, g, b]) {
  return `rgb(${r} ${g} ${b})`;
}

// A colour blended over another with opacity `share`.
export function mixed(under, over, share) {
  const [from, to] = [channels(under), channels(over)];
  return css(from.map((value, c) => Math.round(value + (to[c] - value) * share)));
}

// Any CSS colour as numbers, converted by the browser.
function channels(colour) {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

// The legend of the colours: the weights at both ends and in the middle of the scale.
export function legend({ full, scale }, greatest = percent(full)) {
  const middle = scale === 'root' ? full / 4 : full / 2;
  const numbers = [percent(0), greatest === percent(full) ? percent(middle) : '', greatest].map((text) => make('span', {}, text));
  return make('div', { class: 'legend', role: 'img', 'aria-label': greatest === percent(full) ? `Colours go from 0 over ${percent(middle)} to ${percent(full)}` : `Colours go from 0 to the ${greatest} weight` }, make('span', { class: 'ramp' }), make('span', { class: 'ticks' }, numbers));
}
