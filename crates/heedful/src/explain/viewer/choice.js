// The choice of view, and its encoding in the URL.

import { kindsOf, layersOf, MEAN } from './weights.js';

export const VIEWS = ['words', 'lines', 'colours', 'matrix', 'grid', 'tree'];

// Counted from 1 in the URL, as on the page; layers and heads are written by their names, which count from 0.
const COUNTED = ['sentence', 'output'];
const LAYER = /^(?:encoder\.\d{1,3}\.self|decoder\.\d{1,3}\.(?:self|cross)|pooling)$/;

export const FIRST = { view: 'words', sentence: 0, output: 0, kind: 'cross', layer: MEAN, head: MEAN, level: 'word', form: 'maps' };

// The nearest choice that these explanations support.
export function possible(choice, explanations) {
  const within = (value, length) => (Number.isInteger(value) && value >= 0 && value < length ? value : 0);
  const fitted = { ...choice };
  fitted.sentence = within(choice.sentence, explanations.length);
  const explanation = explanations[fitted.sentence];
  fitted.output = within(choice.output, explanation.outputs.length);
  const output = explanation.outputs[fitted.output];
  if (!output) return fitted;
  const kinds = kindsOf(output);
  if (choice.kind === 'alignment' && choice.view === 'lines') return fitted;
  if (!kinds.includes(choice.kind)) fitted.kind = kinds.at(-1) ?? 'cross';
  const layers = layersOf(output, fitted.kind);
  // Another kind of attention: its layer at the same depth.
  const depth = (name) => name.split('.')[1];
  const isNear = ({ layer }) => choice.layer !== MEAN && depth(layer) === depth(choice.layer);
  const layer = layers.find((known) => known.layer === choice.layer) ?? layers.find(isNear);
  fitted.layer = layer?.layer ?? MEAN;
  const heads = (layer ?? layers[0])?.heads.length ?? 0;
  if (!(choice.head < heads)) fitted.head = MEAN;
  return fitted;
}

// Only values that differ from the default are written.
export function toParameters(choice) {
  const changed = Object.entries(choice).filter(([name, value]) => name in FIRST && value !== FIRST[name]);
  return changed.map(([name, value]) => [name, String(COUNTED.includes(name) ? value + 1 : value)]);
}

// Reads a URL: unknown values are ignored.
export function fromParameters(parameters) {
  const choice = { ...FIRST };
  const known = { view: VIEWS, kind: ['encoder', 'decoder', 'cross', 'pooling', 'alignment'], level: ['token', 'word'], form: ['maps', 'lines'] };
  for (const [name, values] of Object.entries(known)) {
    if (values.includes(parameters.get(name))) choice[name] = parameters.get(name);
  }
  for (const name of COUNTED) {
    if (/^[1-9]\d{0,3}$/.test(parameters.get(name) ?? '')) choice[name] = Number(parameters.get(name)) - 1;
  }
  if (LAYER.test(parameters.get('layer') ?? '')) choice.layer = parameters.get('layer');
  if (/^\d{1,3}$/.test(parameters.get('head') ?? '')) choice.head = Number(parameters.get('head'));
  return choice;
}
