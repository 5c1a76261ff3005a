// All layers and heads of one kind as small maps; a click opens one of them.

import { css, ramp, step, theme } from './colour.js';
import { make } from './elements.js';
import { Scene } from './scene.js';
import { headsOf, layersOf, scaleOf, share } from './weights.js';

const SIDE = 112;
// A map on the screen may have this many cells a side; the browser makes it smaller.
const FINE = 3 * SIDE;
// More heads than this go on in the next line.
const BESIDE = 8;

export function drawGrid(stage, { output, choice, change }) {
  const colours = theme();
  const shades = ramp(colours);
  const rows = make('div', { class: 'grid' });
  const tiles = [];
  for (const layer of layersOf(output, choice.kind)) {
    const maps = make('div', { class: 'maps' });
    maps.style.setProperty('--beside', String(Math.min(BESIDE, layer.heads.length)));
    headsOf(layer).forEach((weights, head) => {
      const canvas = smallMap(weights, layer, shades);
      const open = () => change({ view: 'matrix', layer: layer.layer, head });
      maps.append(make('button', { type: 'button', class: 'tile', 'data-layer': layer.layer, 'data-head': head, 'aria-label': `Layer ${layer.layer}, head ${head}: open`, on: { click: open } },
        canvas, make('span', { 'aria-hidden': 'true' }, `Head ${head}`)));
      tiles.push({ weights, layer, head });
    });
    rows.append(make('section', { class: 'layer', 'aria-label': `Layer ${layer.layer}` }, make('h3', {}, `Layer ${layer.layer}`), maps));
  }
  stage.append(rows, make('p', { class: 'hint' }, 'Rows attend to columns. Every map has the full colour at its own greatest weight.'));
  return { scene: () => scene(tiles, colours, shades) };
}

// A matrix as a picture without labels.
export function smallMap(weights, size, shades) {
  const canvas = make('canvas', { class: Math.max(size.queries, size.keys) > SIDE ? 'fine' : '', 'aria-hidden': 'true' });
  paint(canvas, pool(weights, size, FINE), shades);
  return canvas;
}

// A matrix of no more than `most` cells a side: of the weights that share a cell the greatest counts, so thin lines
// survive. Every cell holds equally many weights; otherwise stripes would appear that are not there.
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

// One pixel a cell; the style sheet stretches it without smoothing.
function paint(canvas, { rows, columns, cells, scale }, shades) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  cells.forEach((weight, i) => image.data.set([...shades[step(share(scale, weight))], 255], 4 * i));
  context.putImageData(image, 0, 0);
}

function scene(tiles, colours, shades) {
  const layers = [...new Set(tiles.map(({ layer }) => layer.layer))];
  const heads = Math.max(...tiles.map(({ head }) => head)) + 1;
  const picture = new Scene(70 + heads * (SIDE + 12), 24 + layers.length * (SIDE + 12), colours.card);
  for (let head = 0; head < heads; head++) picture.text(70 + head * (SIDE + 12), 16, `Head ${head}`, { size: 12, fill: colours.soft });
  layers.forEach((layer, row) => picture.text(8, 24 + row * (SIDE + 12) + 14, `Layer ${layer}`, { size: 12, fill: colours.soft }));
  for (const { weights, layer, head } of tiles) {
    const { rows, columns, cells, scale } = pool(weights, layer, SIDE);
    const [left, top] = [70 + head * (SIDE + 12), 24 + layers.indexOf(layer.layer) * (SIDE + 12)];
    const [width, height] = [SIDE / columns, SIDE / rows];
    picture.rect(left, top, SIDE, SIDE, css(shades[0]));
    cells.forEach((weight, i) => {
      const shade = step(share(scale, weight));
      if (shade > 0) picture.rect(left + (i % columns) * width, top + Math.floor(i / columns) * height, width, height, css(shades[shade]));
    });
  }
  return picture;
}
