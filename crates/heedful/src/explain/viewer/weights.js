// Computes the matrix to draw from an explanation: unpacked, averaged over heads and layers, by token or by word.

export const MEAN = 'mean';

const unpacked = new WeakMap();

// The matrices of a layer, one Float32Array for each head, row after row. Unpacked once.
export function headsOf(layer) {
  let heads = unpacked.get(layer);
  if (!heads) {
    heads = layer.heads.map((head) => (typeof head === 'string' ? unpackedHead(head) : Float32Array.from(head.flat())));
    unpacked.set(layer, heads);
  }
  return heads;
}

// Base 64 of 16-bit integers, low byte first, 65535 for 1.
function unpackedHead(text) {
  const bytes = atob(text);
  const weights = new Float32Array(bytes.length / 2);
  for (let i = 0; i < weights.length; i++) {
    weights[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
  }
  return weights;
}

// The scores of a head before the softmax, row after row, −∞ where a mask hides the key; null if they were not requested.
export function scoresOf(layer, head) {
  const scores = layer.scores?.[head];
  if (!scores) return null;
  if (typeof scores !== 'string') return Float32Array.from(scores.flat(), (score) => score ?? -Infinity);
  // Base 64 of 32-bit floats, low byte first.
  const bytes = Uint8Array.from(atob(scores), (byte) => byte.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

export function layersOf(output, kind) {
  return output.attention.filter((layer) => layer.kind === kind);
}

// The kinds of attention of an output, in the order of computation.
export function kindsOf(output) {
  return ['encoder', 'decoder', 'cross', 'pooling'].filter((kind) => layersOf(output, kind).length > 0);
}

// The matrix to draw: { queries, keys, weights, scores?, full, scale }, where queries and keys are units, and weights and
// scores are in row-major order. `full` is the maximum weight, drawn in full colour. Null if the output has no such attention.
export function matrixOf(explanation, choice) {
  const output = explanation.outputs[choice.output];
  if (output && choice.kind === 'alignment') return alignmentOf(explanation, output);
  const layers = output ? layersOf(output, choice.kind) : [];
  const chosen = choice.layer === MEAN ? layers : layers.filter((layer) => layer.layer === choice.layer);
  if (chosen.length === 0) return null;
  const matrices = chosen.flatMap((layer) => {
    const heads = headsOf(layer);
    return choice.head === MEAN ? heads : heads.slice(choice.head, choice.head + 1);
  });
  if (matrices.length === 0) return null;
  const [rows, columns] = tokensOf(explanation, output, choice.kind);
  const tokens = { queries: units(rows, 'token'), keys: units(columns, 'token'), weights: mean(matrices) };
  // Scores exist for a single head and token only, not for means.
  if (matrices.length === 1) tokens.scores = scoresOf(chosen[0], choice.head === MEAN ? 0 : choice.head);
  const matrix = choice.level === 'word' ? byWord(tokens, units(rows, 'word'), units(columns, 'word')) : tokens;
  return { ...matrix, ...scaleOf(matrix.weights, matrix.keys.length) };
}

// The alignment as a matrix of words, 1 for aligned pairs.
function alignmentOf(explanation, output) {
  const [queries, keys] = [units(output.tokens, 'word'), units(explanation.source.tokens, 'word')];
  const weights = new Float32Array(queries.length * keys.length);
  for (const [from, to] of output.alignment) {
    const [row, column] = [queries.findIndex(({ word }) => word === to), keys.findIndex(({ word }) => word === from)];
    if (row >= 0 && column >= 0) weights[row * keys.length + column] = 1;
  }
  return { queries, keys, weights, full: 1, scale: 'linear' };
}

// The tokens of rows and columns. A step of the decoder attends to `<bos>` and the tokens generated before it.
function tokensOf(explanation, output, kind) {
  const source = explanation.source.tokens;
  const generated = output.tokens;
  if (kind === 'encoder') return [source, source];
  if (kind === 'cross' || kind === 'pooling') return [generated, source];
  return [generated, [{ piece: '<bos>', word: null }, ...generated.slice(0, -1)]];
}

// Tokens, or tokens grouped into words. Tokens that belong to no word stay separate.
export function units(tokens, level) {
  const gathered = [];
  let open = null;
  tokens.forEach((token, index) => {
    const joins = level === 'word' && token.word !== null && open !== null && open.word === token.word;
    if (joins) {
      open.tokens.push(index);
      open.pieces.push(token.piece);
      open.log_probability += token.log_probability ?? 0;
    } else {
      open = { word: token.word, tokens: [index], pieces: [token.piece], log_probability: token.log_probability ?? null };
      gathered.push(open);
    }
  });
  return gathered.map((unit) => ({ ...unit, special: unit.word === null && /^<\w+>$/.test(unit.pieces[0]), label: label(unit.pieces, level) }));
}

function label(pieces, level) {
  const joined = pieces.join('');
  // The sign ▁ for a space is as heavy as a letter in many fonts.
  if (level === 'token') return joined.replaceAll('▁', '·');
  return spelled(joined) || '␣';
}

// Pieces joined into text: spaces decoded, and rare characters decoded from byte tokens.
export function textOf(joined) {
  const bytes = (run) => Uint8Array.from(run.match(/[0-9A-F]{2}(?=>)/g), (byte) => Number.parseInt(byte, 16));
  return joined.replace(/(?:<0x[0-9A-F]{2}>)+/g, (run) => new TextDecoder().decode(bytes(run))).replaceAll('▁', ' ');
}

// The same, trimmed of white space.
export function spelled(joined) {
  return textOf(joined).trim();
}

// The attention of a word to a word: the mean over its tokens of their summed weight on the tokens of the other word. So
// rows still sum to 1.
function byWord({ weights, keys }, rows, columns) {
  const merged = new Float32Array(rows.length * columns.length);
  rows.forEach((row, i) => {
    columns.forEach((column, j) => {
      let sum = 0;
      for (const query of row.tokens) for (const key of column.tokens) sum += weights[query * keys.length + key];
      merged[i * columns.length + j] = sum / row.tokens.length;
    });
  });
  return { queries: rows, keys: columns, weights: merged };
}

export function mean(matrices) {
  if (matrices.length === 1) return matrices[0];
  const sum = new Float32Array(matrices[0].length);
  for (const matrix of matrices) for (let i = 0; i < sum.length; i++) sum[i] += matrix[i];
  return sum.map((weight) => weight / matrices.length);
}

// With many keys, most weights are far below the maximum and would look alike: then the colour scale is a square root.
const MANY_KEYS = 40;

export function scaleOf(weights, keys) {
  return { full: Math.max(greatest(weights), 1e-6), scale: keys > MANY_KEYS ? 'root' : 'linear' };
}

// The share of the full colour for a weight.
export function share({ full, scale }, weight) {
  const part = Math.max(0, Math.min(1, weight / full));
  return scale === 'root' ? Math.sqrt(part) : part;
}

function greatest(weights) {
  let top = 0;
  for (const weight of weights) if (weight > top) top = weight;
  return top;
}

// The strongest links of one row (side 'query') or one column (side 'key'), as { index, weight }, strongest first.
export function strongest(matrix, side, index, count) {
  const columns = matrix.keys.length;
  const length = side === 'query' ? columns : matrix.queries.length;
  const weight = (other) => (side === 'query' ? matrix.weights[index * columns + other] : matrix.weights[other * columns + index]);
  const links = Array.from({ length }, (_, other) => ({ index: other, weight: weight(other) }));
  return links.sort((a, b) => b.weight - a.weight || a.index - b.index).slice(0, count);
}
