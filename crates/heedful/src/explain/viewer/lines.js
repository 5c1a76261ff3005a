// Two sentences joined by lines as strong as the attention between them: one above the other if they fit, else side by
// side with one word per row, for phones and for 150 tokens.

import { make, makeSvg, roving } from './elements.js';
import { theme } from './colour.js';
import { directionOf } from './text-direction.js';
import { percent } from './numbers.js';
import { Scene, shortened, textWidth } from './scene.js';
import { ALIGNMENT, KINDS, sentence } from './sides.js';
import { share, strongest } from './weights.js';

const ROW = 24;
const ACROSS = 190;
// Font sizes and word gaps: for the stacked layout, where the first that fits is used, and for the side-by-side layout.
const WIDE_SPACING = [[21, 34], [18, 24], [16, 16]];
const SIDEWAYS = 16;
// Weaker lines are not drawn, because they would only be grey noise.
const WEAKEST = 0.08;
const LINKS_PER_ROW = 4;

export function drawLines(stage, context) {
  const { matrix, choice, say } = context;
  const places = layout(matrix, stage.clientWidth);
  const names = KINDS[choice.kind] ?? ALIGNMENT;
  const svg = makeSvg('svg', {
    class: 'lines', viewBox: `0 0 ${places.width} ${places.height}`, width: places.width, height: places.height,
    role: 'group', 'aria-label': `${names.queries} and ${names.keys}, joined by lines of attention`,
  });
  const rest = makeSvg('g', { class: 'rest' }, links(matrix).map((link) => line(places, link, matrix)));
  const held = makeSvg('g', { class: 'held' });
  svg.append(rest, held);

  const show = (side, index) => {
    const links = strongest(matrix, side, index, 12).filter(({ weight }) => weight >= WEAKEST * matrix.full);
    const ends = links.map(({ index: other, weight }) => (side === 'query' ? { query: index, key: other, weight } : { query: other, key: index, weight }));
    held.replaceChildren(...ends.map((link) => line(places, link, matrix)));
    svg.classList.add('holding');
    words.query.forEach((word, i) => word.classList.toggle('lit', ends.some(({ query }) => query === i)));
    words.key.forEach((word, i) => word.classList.toggle('lit', ends.some(({ key }) => key === i)));
  };
  const release = () => {
    held.replaceChildren();
    svg.classList.remove('holding');
    for (const word of [...words.query, ...words.key]) word.classList.remove('lit');
  };

  const words = { key: [], query: [] };
  for (const side of ['key', 'query']) {
    const units = side === 'key' ? matrix.keys : matrix.queries;
    const group = makeSvg('g', { role: 'group', 'aria-label': side === 'key' ? names.keys : names.queries });
    units.forEach((unit, index) => {
      const { x, y, anchor, left, width, label } = places[side][index];
      const word = makeSvg('g', { class: unit.special ? 'end special' : 'end', role: 'button', 'data-side': side, 'data-index': index, 'aria-label': unit.label },
        makeSvg('rect', { x: left - 5, y: y - places.size - 2, width: width + 10, height: places.size + 10, rx: 5 }),
        makeSvg('text', { x, y, 'text-anchor': anchor, 'font-size': places.size }, label));
      const hold = () => {
        show(side, index);
        say(sentence(matrix, side, index, strongest(matrix, side, index, 3), percent));
      };
      word.addEventListener('pointerenter', () => show(side, index));
      word.addEventListener('focus', hold);
      word.addEventListener('click', hold);
      word.addEventListener('blur', release);
      words[side].push(word);
      group.append(word);
    });
    roving(group, words[side]);
    svg.append(group);
  }
  svg.addEventListener('pointerleave', release);
  stage.append(make('div', { class: 'scroll' }, svg));
  const resized = () => {
    stage.replaceChildren();
    return drawLines(stage, context);
  };
  return { scene: () => linesScene(matrix, stage.clientWidth), resized };
}

// The links that are always drawn: the few strongest of every row.
function links(matrix) {
  return matrix.queries.flatMap((_, query) => strongest(matrix, 'query', query, LINKS_PER_ROW)
    .filter(({ weight }) => weight >= WEAKEST * matrix.full)
    .map(({ index: key, weight }) => ({ query, key, weight })));
}

function line(places, { query, key, weight }, matrix) {
  const [a, b, c, d] = curve(places, query, key);
  const strength = share(matrix, weight);
  return makeSvg('path', { d: `M${a}C${b} ${c} ${d}`, 'stroke-width': (1 + 3 * strength).toFixed(2), 'stroke-opacity': strength.toFixed(3) });
}

export function curve(places, query, key) {
  const [a, d] = [places.key[key].end, places.query[query].end];
  const [dx, dy] = [d[0] - a[0], d[1] - a[1]];
  return places.stacked ? [a, [a[0], a[1] + dy / 2], [d[0], d[1] - dy / 2], d] : [a, [a[0] + dx / 2, a[1]], [d[0] - dx / 2, d[1]], d];
}

// The positions of words and of the ends of lines. `least` is the minimum space of every word on the upper or left side.
export function layout({ keys, queries }, space, least = 0) {
  const widths = (size) => [keys, queries].map((units, side) => units.map((unit) => Math.max(side === 0 ? least : 0, textWidth(unit.label, size))));
  for (const [size, gap] of WIDE_SPACING) {
    const total = (list) => list.reduce((sum, width) => sum + width + gap, gap);
    if (Math.max(...widths(size).map(total)) <= space) return stacked(keys, queries, widths(size), { space, size, gap, least });
  }
  return sideBySide(keys, queries, [keys, queries].map((units) => units.map((unit) => textWidth(unit.label, SIDEWAYS))), space, least);
}

function stacked(keys, queries, [above, below], { space, size, gap, least }) {
  const row = (units, widths, y, end) => {
    const total = widths.reduce((sum, width) => sum + width + gap, -gap);
    const rtl = directionOf(units) === 'rtl';
    let along = (space - total) / 2;
    return units.map((unit, i) => {
      const left = rtl ? space - along - widths[i] : along;
      along += widths[i] + gap;
      return { label: unit.label, left, width: widths[i], x: left + widths[i] / 2, y, anchor: 'middle', end: [left + widths[i] / 2, end] };
    });
  };
  const height = ACROSS + 60;
  return { stacked: true, size, width: space, height, key: row(keys, above, 28, least > 0 ? 54 : 40), query: row(queries, below, height - 14, height - 40) };
}

function sideBySide(keys, queries, [left, right], space, least) {
  const between = Math.max(80, Math.min(260, space * 0.3));
  const limit = Math.max(60, (space - between - least) / 2 - 16);
  const wide = (widths) => Math.min(limit, Math.max(...widths, 20));
  const from = least + wide(left) + 10;
  const to = from + between;
  const shift = Math.max(0, (space - to - wide(right) - 10) / 2);
  const rows = Math.max(keys.length, queries.length);
  // The shorter sentence is spread, so that lines run across and not down the page.
  const pitch = (units) => ROW * Math.max(1, Math.min(3, rows / Math.max(1, units.length)));
  const column = (units, widths, anchor, x, end) => units.map((unit, i) => {
    const width = Math.min(limit, widths[i]);
    const y = (i + 0.5) * pitch(units) + ROW / 2 - 4;
    return { label: shortened(unit.label, SIDEWAYS, limit), left: anchor === 'end' ? x - width : x, width, x, y, anchor, end: [end, y - SIDEWAYS * 0.33] };
  });
  return {
    stacked: false,
    size: SIDEWAYS,
    width: space,
    height: rows * ROW + 8,
    key: column(keys, left, 'end', from + shift, from + shift + 9),
    query: column(queries, right, 'start', to + shift, to + shift - 9),
  };
}

export function linesScene(matrix, space) {
  const colours = theme();
  const places = layout(matrix, space);
  const picture = new Scene(places.width, places.height, colours.panel);
  for (const { query, key, weight } of links(matrix)) {
    const strength = share(matrix, weight);
    picture.curve(curve(places, query, key), colours.heat, 1 + 3 * strength, strength);
  }
  for (const { x, y, label, anchor } of [...places.key, ...places.query]) {
    picture.text(x, y, label, { size: places.size, anchor, fill: colours.ink });
  }
  return picture;
}
