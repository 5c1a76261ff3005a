// All layers and heads of one kind, as small heat maps or line plots; a click opens one of them.

import { css, ramp, step, theme } from './colour.js';
import { make, makeSvg } from './elements.js';
import { Scene } from './scene.js';
import { KINDS, placeName } from './sides.js';
import { headsOf, layersOf, scaleOf, share } from './weights.js';

const SIDE = 112;
// The maximum number of cells per side of a map on the screen; the browser scales it down.
const FINE = 3 * SIDE;
// The maximum number of heads in a row.
const HEADS_PER_ROW = 8;
// The width of layer names in the saved picture.
const NAMES = 112;
// The number of line strengths, with one path each: hundreds of thousands of lines take only a few elements.
const STRENGTHS = 5;
const WEAKEST = 0.1;

// `heads` switches heads off: { off: Set of names, toggle(name) }; null if that is not supported.
export function drawGrid(stage, { output, choice, change, heads }) {
  const colours = theme();
  const shades = ramp(colours);
  const rows = make('div', { class: 'grid' });
  const tiles = [];
  for (const layer of layersOf(output, choice.kind)) {
    const maps = make('div', { class: 'maps' });
    maps.style.setProperty('--columns', String(Math.min(HEADS_PER_ROW, layer.heads.length)));
    headsOf(layer).forEach((weights, head) => {
      const place = placeName({ kind: choice.kind, layer: layer.layer, head });
      const open = () => change({ view: choice.form === 'lines' ? 'lines' : 'matrix', layer: layer.layer, head });
      const picture = choice.form === 'lines' ? smallLines(weights, layer) : smallMap(weights, layer, shades);
      const tile = make('button', { type: 'button', class: 'tile', 'data-layer': layer.layer, 'data-head': head, 'aria-label': `head ${head} of ${layer.layer}: open`, on: { click: open } },
        picture, make('span', { 'aria-hidden': 'true' }, `head ${head}`));
      maps.append(heads ? make('div', { class: 'switchable' }, tile, switchOf(heads, place)) : tile);
      tiles.push({ weights, layer, head });
    });
    rows.append(make('section', { class: 'layer', 'aria-label': layer.layer }, make('h3', {}, layer.layer), maps));
  }
  const { queries, keys } = KINDS[choice.kind];
  const meaning = choice.form === 'lines' ? `Left: ${keys}. Right: ${queries}. From top to bottom in the order of the text.` : `Rows (${queries}) attend to columns (${keys}).`;
  stage.append(rows, make('p', { class: 'hint' }, `${meaning} Every head has the full colour at its own greatest weight.${heads ? ' “On” switches a head off: the translation above is then made without it.' : ''}`));
  return { scene: () => scene(tiles, colours, shades, choice.form) };
}

function switchOf({ off, toggle }, name) {
  const isOff = off.has(name);
  return make('button', { type: 'button', class: 'head-switch', role: 'switch', 'aria-checked': String(!isOff), 'aria-label': name, 'data-name': name, on: { click: () => toggle(name) } }, isOff ? 'Off' : 'On');
}

// A matrix as a picture without labels.
export function smallMap(weights, size, shades) {
  const canvas = make('canvas', { class: Math.max(size.queries, size.keys) > SIDE ? 'fine' : '', 'aria-hidden': 'true' });
  paint(canvas, pool(weights, size, FINE), shades);
  return canvas;
}

// Keys on the left side, queries on the right side, from top to bottom.
function smallLines(weights, size) {
  const svg = makeSvg('svg', { class: 'small-lines', viewBox: `0 0 ${SIDE} ${SIDE}`, 'aria-hidden': 'true' });
  for (const { d, strength } of strands(weights, size)) svg.append(makeSvg('path', { d, 'stroke-opacity': strength.toFixed(2), 'stroke-width': (0.6 + 1.4 * strength).toFixed(2) }));
  return svg;
}

function strands(weights, { queries, keys }) {
  const scale = scaleOf(weights, keys);
  const at = (index, count) => ((index + 0.5) / count) * SIDE;
  const paths = Array.from({ length: STRENGTHS }, () => []);
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < keys; key++) {
      const strength = share(scale, weights[query * keys + key]);
      if (strength < WEAKEST) continue;
      paths[Math.min(STRENGTHS - 1, Math.floor(strength * STRENGTHS))].push([at(key, keys), at(query, queries)]);
    }
  }
  return paths.map((ends, i) => ({ ends, strength: (i + 1) / STRENGTHS, d: ends.map(([from, to]) => `M3 ${from.toFixed(1)}L${SIDE - 3} ${to.toFixed(1)}`).join('') })).filter(({ ends }) => ends.length > 0);
}

// Max-pools a matrix to at most `most` cells per side, so that thin lines survive. Every cell covers equally many weights;
// otherwise artificial stripes would appear.
function pool(weights, { queries, keys }, most) {
  const [down, across] = [Math.ceil(queries / most), Math.ceil(keys / most)];
  const [rows, columns] = [Math.ceil(queries / down), Math.ceil(keys / across)];
  const cells = new Float32Array(rows * columns);
  for (let i = 0; i < queries; i++) {
    const row = Math.floor(i / down) * columns;
    for (let j = 0; j < keys; j++) {
      const cell = row + Math.floor(j / across);
      cells[cell] = Math.max(cells[cell], weights[i * keys + j]);
    }
  }
  return { rows, columns, cells, scale: scaleOf(cells, keys) };
}

// One pixel per cell; the style sheet scales it without smoothing.
function paint(canvas, { rows, columns, cells, scale }, shades) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  cells.forEach((weight, i) => image.data.set([...shades[step(share(scale, weight))], 255], 4 * i));
  context.putImageData(image, 0, 0);
}

function scene(tiles, colours, shades, form) {
  const layers = [...new Set(tiles.map(({ layer }) => layer.layer))];
  const heads = Math.max(...tiles.map(({ head }) => head)) + 1;
  const picture = new Scene(NAMES + heads * (SIDE + 12), 24 + layers.length * (SIDE + 12), colours.panel);
  for (let head = 0; head < heads; head++) picture.text(NAMES + head * (SIDE + 12), 16, `head ${head}`, { size: 12, fill: colours.soft });
  layers.forEach((layer, row) => picture.text(0, 24 + row * (SIDE + 12) + 14, layer, { size: 12, fill: colours.soft }));
  for (const { weights, layer, head } of tiles) {
    const [left, top] = [NAMES + head * (SIDE + 12), 24 + layers.indexOf(layer.layer) * (SIDE + 12)];
    picture.rect(left, top, SIDE, SIDE, css(shades[0]));
    if (form === 'lines') {
      for (const { ends, strength } of strands(weights, layer)) {
        for (const [from, to] of ends) picture.curve([[left + 3, top + from], [left + SIDE / 2, top + (from + to) / 2], [left + SIDE / 2, top + (from + to) / 2], [left + SIDE - 3, top + to]], colours.heat, 0.6 + 1.4 * strength, strength);
      }
      continue;
    }
    const { rows, columns, cells, scale } = pool(weights, layer, SIDE);
    const [width, height] = [SIDE / columns, SIDE / rows];
    cells.forEach((weight, i) => {
      const shade = step(share(scale, weight));
      if (shade > 0) picture.rect(left + (i % columns) * width, top + Math.floor(i / columns) * height, width, height, css(shades[shade]));
    });
  }
  return picture;
}
