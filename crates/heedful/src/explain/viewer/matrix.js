// The matrix as a heat map on a canvas. The canvas has the size of the visible part, never of the whole matrix: scrolling
// repaints it. Measured with 400 × 400 tokens: 2 ms for each move of the pointer.

import { css, ramp, step, theme } from './colour.js';
import { direction } from './text-direction.js';
import { make } from './elements.js';
import { percent } from './numbers.js';
import { Scene, font, shortened, textWidth } from './scene.js';
import { placeName } from './sides.js';
import { tableOf } from './table.js';
import { share } from './weights.js';

// The maximum width of labels, which also take at most a quarter of the space.
const LABEL = 130;
const READABLE = 11;
const LARGEST = 34;
const SMALLEST = 2;
// Larger cells have a gap between them.
const MAX_CELL_WITHOUT_GAP = 10;

export function drawMatrix(stage, { matrix, choice, say }) {
  const canvas = make('canvas', { tabindex: '0', role: 'img', 'aria-label': `${placeName(choice)}, ${matrix.queries.length} rows × ${matrix.keys.length} columns. Arrow keys read single weights; the table below has them all.` });
  const spacer = make('div', { class: 'spacer' });
  const view = make('div', { class: 'map' }, canvas, spacer);
  const readout = make('p', { class: 'cell', dir: 'auto' }, ' ');
  const zoom = make('div', { class: 'zoom segmented', role: 'group', 'aria-label': 'Size' });
  stage.append(make('div', { class: 'above-map' }, readout, zoom), view, tableOf(matrix, choice.kind));

  const map = new HeatMap(matrix, canvas, view, spacer);
  for (const [text, name, action] of [['−', 'Smaller', () => map.zoom(1 / 1.5)], ['Fit', 'Fit', () => map.zoom(null)], ['+', 'Larger', () => map.zoom(1.5)]]) {
    zoom.append(make('button', { type: 'button', 'aria-label': name, on: { click: action } }, text));
  }
  const point = (cell) => {
    map.point(cell);
    const text = cell ? reading(matrix, cell) : ' ';
    readout.textContent = text;
    return text;
  };
  canvas.addEventListener('pointermove', (event) => point(map.cellAt(event)));
  canvas.addEventListener('pointerdown', (event) => point(map.cellAt(event)));
  canvas.addEventListener('pointerleave', () => point(null));
  canvas.addEventListener('keydown', (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const { row, column } = map.pointed ?? { row: 0, column: -move[1] };
    const within = (value, length) => Math.max(0, Math.min(length - 1, value));
    const cell = { row: within(row + move[0], matrix.queries.length), column: within(column + move[1], matrix.keys.length) };
    map.reveal(cell);
    say(point(cell));
  });
  view.addEventListener('scroll', () => map.paint());
  map.zoom(null);
  return { scene: () => map.scene(), resized: () => map.refit() };
}

// The text about a cell, with its score if scores were requested.
function reading({ queries, keys, weights, scores }, { row, column }) {
  const place = row * keys.length + column;
  const weight = `“${queries[row].label}” attended to “${keys[column].label}”: ${percent(weights[place])}`;
  if (!scores) return weight;
  return Number.isFinite(scores[place]) ? `${weight}, score ${scores[place].toFixed(2)}` : `${weight}, hidden by a mask`;
}

class HeatMap {
  constructor(matrix, canvas, view, spacer) {
    Object.assign(this, { matrix, canvas, view, spacer, pointed: null });
    this.colours = theme();
    this.shades = ramp(this.colours);
    this.cells = pixels(matrix, this.shades);
    this.limit = Math.min(LABEL, Math.max(48, view.clientWidth / 4));
    const widest = (units) => Math.min(this.limit, Math.max(...units.map(({ label }) => textWidth(label, 13)), 8));
    this.left = widest(matrix.queries) + 12;
    this.labels = widest(matrix.keys);
  }

  // The cell size at which all columns fit, and all rows too unless labels would be too small.
  fitting() {
    const { queries, keys } = this.matrix;
    const wide = this.view.clientWidth - this.left - 8;
    const across = wide / Math.max(1, keys.length);
    const columns = across > this.labels + 2 ? across : (wide - this.labels * 0.5) / Math.max(1, keys.length);
    const rows = (window.innerHeight * 0.76 - this.labels * 0.87 - 20) / Math.max(1, queries.length);
    return Math.max(SMALLEST, Math.min(LARGEST, columns, Math.max(rows, READABLE + 3)));
  }

  // Scales cells by a factor; without one they fit the screen.
  zoom(factor) {
    this.zoomed = factor !== null;
    this.resize(factor === null ? this.fitting() : this.cell * factor);
  }

  // Called when the available space has changed.
  refit() {
    this.resize(this.zoomed ? this.cell : this.fitting());
  }

  resize(cell) {
    this.cell = Math.max(SMALLEST, Math.min(2 * LARGEST, cell));
    // Labels wider than a cell are rotated by 60 degrees.
    this.rotated = this.labels > this.cell - 2;
    this.top = this.rotated ? this.labels * 0.87 + 14 : 24;
    const { queries, keys } = this.matrix;
    this.width = this.left + keys.length * this.cell + (this.rotated ? this.labels * 0.5 : 0) + 8;
    this.height = this.top + queries.length * this.cell + 2;
    this.spacer.style.setProperty('width', `${this.width}px`);
    this.spacer.style.setProperty('height', `${this.height}px`);
    this.view.style.setProperty('--height', `${Math.ceil(this.height)}px`);
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [this.view.clientWidth, this.view.clientHeight];
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(high * ratio);
    this.canvas.style.setProperty('width', `${wide}px`);
    this.canvas.style.setProperty('height', `${high}px`);
    this.paint();
  }

  // The range of visible rows or columns.
  visibleRange(scrolled, space, length) {
    const first = Math.floor(scrolled / this.cell);
    return [Math.max(0, first), Math.min(length, Math.ceil((scrolled + space) / this.cell) + 1)];
  }

  paint() {
    const { canvas, view, cell, left, top, matrix, pointed } = this;
    const context = canvas.getContext('2d');
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [canvas.width / ratio, canvas.height / ratio];
    const [dx, dy] = [view.scrollLeft, view.scrollTop];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, wide, high);
    const rows = this.visibleRange(dy, high - top, matrix.queries.length);
    const columns = this.visibleRange(dx, wide - left, matrix.keys.length);
    const [x, y] = [left + columns[0] * cell - dx, top + rows[0] * cell - dy];
    const [across, down] = [columns[1] - columns[0], rows[1] - rows[0]];
    context.save();
    context.beginPath();
    context.rect(left, top, wide, high);
    context.clip();
    // Without smoothing, the edges of cells are crisp on every screen and at every zoom.
    context.imageSmoothingEnabled = false;
    if (across > 0 && down > 0) context.drawImage(this.cells, columns[0], rows[0], across, down, x, y, across * cell, down * cell);
    if (cell > MAX_CELL_WITHOUT_GAP) {
      const snap = (value) => Math.round(value * ratio) / ratio;
      context.fillStyle = this.colours.panel;
      for (let i = 0; i <= down; i++) context.fillRect(left, snap(y + i * cell) - 1, wide, 1);
      for (let j = 0; j <= across; j++) context.fillRect(snap(x + j * cell) - 1, top, 1, high);
    }
    if (pointed) {
      context.strokeStyle = this.colours.ink;
      context.lineWidth = 1.5;
      context.strokeRect(left + pointed.column * cell - dx - 1, top + pointed.row * cell - dy - 1, cell + 1, cell + 1);
    }
    context.restore();
    this.paintLabels(context, { rows, columns, dx, dy, wide, high });
  }

  paintLabels(context, { rows, columns, dx, dy, wide, high }) {
    const { cell, left, top, matrix, pointed } = this;
    const size = Math.max(READABLE, Math.min(13, cell * 0.8));
    // If cells are smaller than letters, only every n-th label is written, and that of the pointed cell.
    const every = Math.ceil((READABLE + 1) / cell);
    const written = (index, own) => index === own || (index % every === 0 && (own === undefined || Math.abs(index - own) >= every));
    context.textBaseline = 'middle';
    const style = (chosen) => {
      context.font = font(size, chosen ? 650 : 400);
      context.fillStyle = chosen ? this.colours.ink : this.colours.soft;
    };
    context.save();
    context.beginPath();
    context.rect(0, top - 2, left, high);
    context.clip();
    context.textAlign = 'right';
    for (let i = rows[0]; i < rows[1]; i++) {
      if (!written(i, pointed?.row)) continue;
      style(i === pointed?.row);
      context.direction = direction(matrix.queries[i].label);
      context.fillText(shortened(matrix.queries[i].label, size, this.limit), left - 7, top + (i + 0.5) * cell - dy);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(left - 6, 0, wide, top);
    context.clip();
    for (let j = columns[0]; j < columns[1]; j++) {
      if (!written(j, pointed?.column)) continue;
      style(j === pointed?.column);
      const label = shortened(matrix.keys[j].label, size, this.limit);
      context.save();
      context.translate(left + (j + 0.5) * cell - dx, top - 8);
      context.textAlign = this.rotated ? 'left' : 'center';
      context.direction = direction(label);
      if (this.rotated) context.rotate(-Math.PI / 3);
      context.fillText(label, 0, 0);
      context.restore();
    }
    context.restore();
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - this.left, event.clientY - box.top - this.top];
    const column = Math.floor((x + this.view.scrollLeft) / this.cell);
    const row = Math.floor((y + this.view.scrollTop) / this.cell);
    const inside = x >= 0 && y >= 0 && row < this.matrix.queries.length && column < this.matrix.keys.length;
    return inside ? { row, column } : null;
  }

  point(cell) {
    this.pointed = cell;
    this.paint();
  }

  // Scrolls a cell into view.
  reveal({ row, column }) {
    const { view, cell, left, top } = this;
    const near = (scrolled, start, space) => Math.min(start, Math.max(scrolled, start + cell - space));
    view.scrollLeft = near(view.scrollLeft, column * cell, view.clientWidth - left);
    view.scrollTop = near(view.scrollTop, row * cell, view.clientHeight - top);
  }

  // The whole map as a picture, including the invisible part.
  scene() {
    const { matrix, left, labels } = this;
    const cell = Math.max(this.cell, READABLE + 1);
    const top = labels * 0.87 + 16;
    const picture = new Scene(left + matrix.keys.length * cell + labels * 0.5 + 8, top + matrix.queries.length * cell + 4, this.colours.panel);
    matrix.queries.forEach((query, i) => {
      picture.text(left - 7, top + (i + 0.5) * cell + 4, shortened(query.label, 12, LABEL), { size: 12, anchor: 'end', fill: this.colours.ink });
      matrix.keys.forEach((key, j) => {
        const weight = matrix.weights[i * matrix.keys.length + j];
        const shade = step(share(matrix, weight));
        if (shade > 0) picture.rect(left + j * cell, top + i * cell, cell - 1, cell - 1, css(this.shades[shade]), `${query.label} → ${key.label}: ${weight.toFixed(3)}`);
      });
    });
    matrix.keys.forEach((key, j) => {
      picture.text(left + (j + 0.5) * cell + 4, top - 6, shortened(key.label, 12, LABEL), { size: 12, turn: -60, fill: this.colours.ink });
    });
    return picture;
  }
}

// One pixel for each weight, painted once: scrolling and pointing only scale it.
function pixels(matrix, shades) {
  const canvas = make('canvas', { width: matrix.keys.length, height: matrix.queries.length });
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  matrix.weights.forEach((weight, i) => image.data.set([...shades[step(share(matrix, weight))], 255], 4 * i));
  context.putImageData(image, 0, 0);
  return canvas;
}
