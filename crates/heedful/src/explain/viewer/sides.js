// The kinds of attention, described in words.

import { MEAN } from './weights.js';

export const KINDS = {
  encoder: { text: 'Encoder', hint: 'self attention of the source', keys: 'Source, keys', queries: 'Source, queries', layer: 'encoder', attention: 'self attention' },
  decoder: { text: 'Decoder', hint: 'self attention of the output', keys: 'Output before', queries: 'Output', layer: 'decoder', attention: 'self attention' },
  cross: { text: 'Cross', hint: 'attention from the output to the source', keys: 'Source', queries: 'Output', layer: 'decoder', attention: 'cross attention' },
  pooling: { text: 'Pooling', hint: 'attention of a classifier to its text', keys: 'Text', queries: 'Label', layer: 'pooling', attention: 'attention' },
};

// Word alignment, drawn as lines only.
export const ALIGNMENT = { text: 'Alignment', hint: 'which word comes from which', keys: 'Source', queries: 'Output' };

// “decoder.1.cross.2”: the same names of layers and heads as everywhere, counted from 0. Without a number, the mean of all.
export function placeName({ kind, layer, head }) {
  if (kind === 'alignment') return 'alignment of words';
  const { layer: stack, attention } = KINDS[kind];
  const isHead = Number.isInteger(head);
  if (layer !== MEAN && isHead) return `${layer}.${head}`;
  const layers = layer === MEAN ? `${stack}, mean of all layers, ${attention}` : layer;
  return head === undefined ? layers : `${layers}, ${isHead ? `head ${head}` : 'mean of all heads'}`;
}

// “an” attended to 自动驾驶 62 %, 一 21 %
export function sentence(matrix, side, index, links, percent) {
  const own = side === 'query' ? matrix.queries[index] : matrix.keys[index];
  const others = side === 'query' ? matrix.keys : matrix.queries;
  const list = links.map(({ index: other, weight }) => `${others[other].label} ${percent(weight)}`).join(', ');
  return side === 'query' ? `“${own.label}” attended to ${list}` : `“${own.label}” was attended to by ${list}`;
}
