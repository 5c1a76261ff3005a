// The hypotheses of the beam as a tree: outputs with a common prefix share it.

import { theme } from './colour.js';
import { make } from './elements.js';
import { percent } from './numbers.js';
import { Scene, textWidth } from './scene.js';
import { spelled } from './weights.js';

export function drawTree(stage, { explanation, choice, change }) {
  const root = grown(explanation.outputs);
  const branch = (node) => {
    const leaf = node.output !== null;
    const text = make('span', { class: 'text', dir: 'auto' }, node.text || '…');
    const odds = make('span', { class: 'odds', title: 'how probable this was after what stands before it' }, percent(Math.exp(node.log_probability)));
    const row = leaf
      ? make('button', {
        type: 'button', class: 'leaf', 'data-output': node.output, 'aria-pressed': String(node.output === choice.output),
        on: { click: () => change({ output: node.output }) },
      }, text, odds, make('span', { class: 'score' }, `#${node.output + 1} · score ${explanation.outputs[node.output].score.toFixed(2).replace('-', '−')}`))
      : make('div', { class: 'node' }, text, odds);
    return make('li', {}, row, node.children.length > 0 ? make('ul', {}, node.children.map(branch)) : null);
  };
  stage.append(make('ul', { class: 'tree', 'aria-label': 'Alternatives' }, root.children.map(branch)));
  stage.append(make('p', { class: 'hint' }, 'Percentages: the probability of a part given everything before it. Choose an alternative to see what the model attended to while generating it.'));
  return { scene: () => scene(root, explanation) };
}

// A node is a sequence of tokens without a branch: { text, log_probability, children, output }.
function grown(outputs) {
  const node = () => ({ pieces: [], log_probability: 0, children: [], output: null });
  const root = node();
  outputs.forEach((output, rank) => {
    let at = root;
    for (const token of output.tokens) {
      let next = at.children.find(({ pieces }) => pieces[0] === token.piece);
      if (!next) {
        next = node();
        next.pieces.push(token.piece);
        next.log_probability = token.log_probability ?? 0;
        at.children.push(next);
      }
      at = next;
    }
    at.output ??= rank;
  });
  joined(root);
  return root;
}

// A node with one child and no output of its own is merged with the child.
function joined(node) {
  node.children.forEach(joined);
  if (node.children.length === 1 && node.output === null && node.pieces.length > 0) {
    const [only] = node.children;
    node.pieces.push(...only.pieces);
    node.log_probability += only.log_probability;
    Object.assign(node, { children: only.children, output: only.output });
  }
  node.text = spelled(node.pieces.filter((piece) => piece !== '<eos>').join('')) || (node.output === null ? '' : '(end)');
}

function scene(root, explanation) {
  const colours = theme();
  const rows = [];
  const walk = (node, depth, parent) => {
    const place = { node, depth, parent, index: rows.length };
    rows.push(place);
    node.children.forEach((child) => walk(child, depth + 1, place));
  };
  root.children.forEach((child) => walk(child, 0, null));
  const line = ({ text, log_probability: odds, output }) => `${text || '…'}   ${percent(Math.exp(odds))}${output === null ? '' : `   #${output + 1} · score ${explanation.outputs[output].score.toFixed(2).replace('-', '−')}`}`;
  const [indent, row] = [28, 32];
  const width = Math.max(...rows.map(({ node, depth }) => 20 + depth * indent + textWidth(line(node), 15))) + 20;
  const picture = new Scene(width, rows.length * row + 16, colours.panel);
  for (const { node, depth, parent, index } of rows) {
    const [x, y] = [20 + depth * indent, 8 + index * row + 21];
    if (parent) {
      const [px, py] = [20 + parent.depth * indent + 4, 8 + parent.index * row + 28];
      picture.curve([[px, py], [px, y - 5], [px, y - 5], [x - 6, y - 5]], colours.soft, 1.2, 0.7);
    }
    picture.text(x, y, line(node), { size: 15, fill: colours.ink, weight: node.output === 0 ? 650 : 400 });
  }
  return picture;
}
