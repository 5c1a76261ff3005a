// Who looks at whom, in words.

export const KINDS = {
  encoder: { text: 'Encoder', hint: 'the source at itself', keys: 'Source, looked at', queries: 'Source, looking' },
  decoder: { text: 'Decoder', hint: 'the output at its own past', keys: 'Said before', queries: 'Output, looking' },
  cross: { text: 'Cross', hint: 'the output at the source', keys: 'Source', queries: 'Output' },
};

// Which word comes from which: drawn as lines only.
export const ALIGNMENT = { text: 'Alignment', hint: 'which word comes from which', keys: 'Source', queries: 'Output' };

// “an” looked at 自动驾驶 62 %, 一 21 %
export function sentence(matrix, side, index, links, percent) {
  const own = side === 'query' ? matrix.queries[index] : matrix.keys[index];
  const others = side === 'query' ? matrix.keys : matrix.queries;
  const list = links.map(({ index: other, weight }) => `${others[other].label} ${percent(weight)}`).join(', ');
  return side === 'query' ? `“${own.label}” looked at ${list}` : `“${own.label}” was looked at by ${list}`;
}
