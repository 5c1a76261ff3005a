// What attends to what, in words.

export const KINDS = {
  encoder: { text: 'Encoder', hint: 'self attention of the source', keys: 'Source, keys', queries: 'Source, queries' },
  decoder: { text: 'Decoder', hint: 'self attention of the output', keys: 'Output before', queries: 'Output' },
  cross: { text: 'Cross', hint: 'attention from the output to the source', keys: 'Source', queries: 'Output' },
  pooling: { text: 'Pooling', hint: 'attention of a classifier to its text', keys: 'Text', queries: 'Label' },
};

// Which words are translations of each other: drawn as lines only.
export const ALIGNMENT = { text: 'Alignment', hint: 'which word comes from which', keys: 'Source', queries: 'Output' };

// “an” attended to 自动驾驶 62 %, 一 21 %
export function sentence(matrix, side, index, links, percent) {
  const own = side === 'query' ? matrix.queries[index] : matrix.keys[index];
  const others = side === 'query' ? matrix.keys : matrix.queries;
  const list = links.map(({ index: other, weight }) => `${others[other].label} ${percent(weight)}`).join(', ');
  return side === 'query' ? `“${own.label}” attended to ${list}` : `“${own.label}” was attended to by ${list}`;
}
