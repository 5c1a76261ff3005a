// All heads of a layer for one word, each in its colour, as in figures 3 to 5 of “Attention Is All You Need”: lines to the
// words that it attends to, each with one small square per head, as strong as the weight.

import { mixed, theme } from './colour.js';
import { make, makeSvg, roving } from './elements.js';
import { layout, curve } from './lines.js';
import { percent } from './numbers.js';
import { headColours } from './palette.js';
import { Scene } from './scene.js';
import { KINDS } from './sides.js';
import { headsOf, layersOf, matrixOf, strongest } from './weights.js';

// Weaker links of a head are drawn as squares only.
const WEAKEST = 0.05;
const SQUARE = 7;
// Lines of different heads to the same word end side by side.
const APART = 4;

export function drawWordHeads(stage, context) {
  const { explanation, output, choice, say } = context;
  const layer = layersOf(output, choice.kind).find((known) => known.layer === choice.layer) ?? layersOf(output, choice.kind).at(-1);
  const matrices = headsOf(layer).map((_, head) => matrixOf(explanation, { ...choice, layer: layer.layer, head }));
  const [{ queries, keys }] = matrices;
  const colours = headColours(matrices.length);
  const places = layout(matrices[0], stage.clientWidth, matrices.length * SQUARE + 8);
  const state = { query: Math.max(0, queries.findIndex(({ special }) => !special)), hidden: new Set() };

  const svg = makeSvg('svg', {
    class: 'lines word-heads', viewBox: `0 0 ${places.width} ${places.height}`, width: places.width, height: places.height,
    role: 'group', 'aria-label': `One word of ${KINDS[choice.kind].queries} and what each head attends to in ${KINDS[choice.kind].keys}`,
  });
  const drawn = makeSvg('g', { 'aria-hidden': 'true' });
  svg.append(drawn);
  const words = { key: [], query: [] };
  const draw = () => {
    drawn.replaceChildren();
    for (const { points, colour, dash, width, opacity } of links(matrices, places, colours, state)) {
      const [a, b, c, d] = points;
      drawn.append(makeSvg('path', { d: `M${a}C${b} ${c} ${d}`, 'stroke-width': width.toFixed(2), 'stroke-opacity': opacity.toFixed(3), stroke: colour, 'stroke-dasharray': dash || null }));
    }
    for (const { x, y, colour, opacity } of squares(matrices, places, colours, state)) drawn.append(makeSvg('rect', { x, y, width: SQUARE - 1, height: SQUARE - 1, fill: colour, 'fill-opacity': opacity.toFixed(3) }));
    words.query.forEach((word, i) => { word.classList.toggle('lit', i === state.query); word.setAttribute('aria-pressed', String(i === state.query)); });
  };
  const described = () => {
    const heads = matrices.map((matrix, head) => ({ head, link: strongest(matrix, 'query', state.query, 1)[0] })).filter(({ head }) => !state.hidden.has(head));
    return `“${queries[state.query].label}”: ${heads.map(({ head, link }) => `head ${head} attended most to ${keys[link.index].label} ${percent(link.weight)}`).join(', ')}`;
  };
  for (const side of ['key', 'query']) {
    const units = side === 'key' ? keys : queries;
    const group = makeSvg('g', { role: 'group', 'aria-label': side === 'key' ? KINDS[choice.kind].keys : KINDS[choice.kind].queries });
    units.forEach((unit, index) => {
      const { x, y, anchor, left, width, label } = places[side][index];
      const isChoice = side === 'query';
      const word = makeSvg('g', { class: unit.special ? 'end special' : 'end', role: isChoice ? 'button' : null, 'data-side': side, 'data-index': index, 'aria-label': isChoice ? unit.label : null },
        makeSvg('rect', { x: left - 5, y: y - places.size - 2, width: width + 10, height: places.size + 10, rx: 5 }),
        makeSvg('text', { x, y, 'text-anchor': anchor, 'font-size': places.size }, label));
      if (isChoice) {
        const choose = () => { state.query = index; draw(); };
        word.addEventListener('pointerenter', choose);
        for (const event of ['focus', 'click']) word.addEventListener(event, () => { choose(); say(described()); });
      }
      words[side].push(word);
      group.append(word);
    });
    if (side === 'query') roving(group, words.query, state.query);
    svg.append(group);
  }
  const legend = make('div', { class: 'head-key', role: 'group', 'aria-label': 'Heads: press to hide or show' }, colours.map(({ colour, text }, head) => {
    const sample = make('span', { class: 'sample', 'aria-hidden': 'true' });
    sample.style.setProperty('background', colour);
    const button = make('button', {
      type: 'button', 'aria-pressed': 'true', 'data-head': head,
      on: { click: () => {
        if (!state.hidden.delete(head)) state.hidden.add(head);
        button.setAttribute('aria-pressed', String(!state.hidden.has(head)));
        draw();
      } },
    }, sample, text);
    return button;
  }));
  stage.append(legend, make('div', { class: 'scroll' }, svg),
    make('p', { class: 'hint' }, `${queries.length > 1 ? 'Hover, tap or focus a word of the output’s side for its own lines. ' : ''}A square beside a word is one head’s weight, from nothing to the full colour at 100 %.`));
  draw();
  const resized = () => {
    stage.replaceChildren();
    return drawWordHeads(stage, context);
  };
  return { scene: () => scene(matrices, places, colours, state), resized, key: () => colours.filter((_, head) => !state.hidden.has(head)) };
}

function shift(places, head, count) {
  const by = (head - (count - 1) / 2) * APART;
  return places.stacked ? [by, 0] : [0, by];
}

function links(matrices, places, colours, { query, hidden }) {
  return matrices.flatMap((matrix, head) => (hidden.has(head) ? [] : strongest(matrix, 'query', query, matrix.keys.length).filter(({ weight }) => weight >= WEAKEST).map(({ index, weight }) => {
    const [dx, dy] = shift(places, head, matrices.length);
    const points = curve(places, query, index).map(([x, y], i) => (i < 2 ? [x + dx, y + dy] : [x, y]));
    return { ...colours[head], points, width: 1 + 4 * weight, opacity: 0.25 + 0.75 * weight };
  })));
}

// One square for each head and key, in a row below the word, or before it in the column layout.
function squares(matrices, places, colours, { query, hidden }) {
  const count = matrices.length;
  return matrices.flatMap((matrix, head) => (hidden.has(head) ? [] : matrix.keys.map((_, key) => {
    const { left, width, y } = places.key[key];
    const at = places.stacked ? [left + width / 2 + (head - count / 2) * SQUARE, y + 7] : [left - 10 - (count - head) * SQUARE, y - places.size * 0.62];
    return { x: at[0], y: at[1], colour: colours[head].colour, opacity: Math.min(1, matrix.weights[query * matrix.keys.length + key]) };
  })));
}

function scene(matrices, places, colours, state) {
  const { panel, ink, soft, edge } = theme();
  const picture = new Scene(places.width, places.height, panel);
  for (const { points, colour, dash, width, opacity } of links(matrices, places, colours, state)) picture.curve(points, colour, width, opacity, dash);
  for (const { x, y, colour, opacity } of squares(matrices, places, colours, state)) {
    if (opacity > 0.01) picture.rect(x, y, SQUARE - 1, SQUARE - 1, mixed(panel, colour, opacity));
  }
  const chosen = places.query[state.query];
  picture.rect(chosen.left - 5, chosen.y - places.size - 2, chosen.width + 10, places.size + 10, edge, '', 5);
  for (const side of ['key', 'query']) {
    places[side].forEach(({ x, y, label, anchor }, i) => picture.text(x, y, label, { size: places.size, anchor, fill: side === 'key' || i === state.query ? ink : soft }));
  }
  return picture;
}
