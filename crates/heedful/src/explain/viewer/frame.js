// The frame of a saved picture: a title and a legend of its colours.

import { css, ramp, step, theme } from './colour.js';
import { percent } from './numbers.js';
import { Scene, textWidth } from './scene.js';
import { share } from './weights.js';

const MARGIN = 20;
const TITLE = 15;
const LINE = 21;
const LEAST = 320;
const RAMP = 180;

// `lines`: the title and subtitles. `scale`: { full, scale } of the colours, if the picture has a colour scale.
// `key`: [{ colour, dash, text }, …] for categorical colours.
export function framed(scene, { lines, scale = null, key = [] }) {
  const colours = theme();
  const width = Math.max(LEAST, scene.width);
  const written = lines.flatMap((line, i) => wrapped(line, i === 0 ? TITLE : 13, i === 0 ? 650 : 400, width).map((text) => ({ text, title: i === 0 })));
  const rows = keyRows(key, width);
  const top = MARGIN + written.length * LINE + rows.length * LINE + (scale ? 36 : 0) + 8;
  const picture = new Scene(width + 2 * MARGIN, top + scene.height + MARGIN, colours.panel);
  written.forEach(({ text, title }, i) => picture.text(MARGIN, MARGIN + (i + 0.7) * LINE, text, { size: title ? TITLE : 13, weight: title ? 650 : 400, fill: title ? colours.ink : colours.soft }));
  let y = MARGIN + written.length * LINE;
  for (const row of rows) {
    for (const { x, colour, dash, text } of row) {
      picture.curve([[MARGIN + x, y + 11], [MARGIN + x + 6, y + 11], [MARGIN + x + 12, y + 11], [MARGIN + x + 18, y + 11]], colour, 4, 1, dash);
      picture.text(MARGIN + x + 25, y + 15, text, { size: 12, fill: colours.soft });
    }
    y += LINE;
  }
  if (scale) drawScale(picture, MARGIN, y + 6, scale, colours);
  picture.add(scene, MARGIN + (width - scene.width) / 2, top);
  return picture;
}

// The colour scale with its weights.
function drawScale(picture, x, y, scale, colours) {
  const shades = ramp(colours);
  const parts = 60;
  for (let i = 0; i < parts; i++) {
    const weight = scale.full * ((i + 0.5) / parts) ** (scale.scale === 'root' ? 2 : 1);
    picture.rect(x + (i * RAMP) / parts, y, RAMP / parts + 0.5, 9, css(shades[step(share(scale, weight))]));
  }
  const middle = scale.scale === 'root' ? scale.full / 4 : scale.full / 2;
  [[0, 'start', 0], [RAMP / 2, 'middle', middle], [RAMP, 'end', scale.full]].forEach(([at, anchor, weight]) => {
    picture.text(x + at, y + 22, percent(weight), { size: 11, anchor, fill: colours.soft });
  });
}

function keyRows(key, width) {
  const rows = [];
  let x = Infinity;
  for (const entry of key) {
    const own = 25 + textWidth(entry.text, 12) + 18;
    if (x + own > width) {
      rows.push([]);
      x = 0;
    }
    rows.at(-1).push({ ...entry, x });
    x += own;
  }
  return rows;
}

// Wraps a line that is too wide: at a space, or between characters if there is no space.
export function wrapped(text, size, weight, width) {
  const lines = [];
  let line = '';
  for (const word of text.split(/(?<=\s)|(?=[\u2e80-\u9fff\uf900-\ufaff])/u)) {
    if (line && textWidth(line + word.trimEnd(), size, weight) > width) {
      lines.push(line.trimEnd());
      line = '';
    }
    for (const character of word) {
      if (line && textWidth(line + character, size, weight) > width && character.trim()) {
        lines.push(line.trimEnd());
        line = '';
      }
      line += character;
    }
  }
  return [...lines, line.trimEnd()];
}
