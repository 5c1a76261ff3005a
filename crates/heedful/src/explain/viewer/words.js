// Both sentences as running text. Hovering, tapping or focusing a word shows its attention.

import { css, theme, tints } from './colour.js';
import { directionOf } from './text-direction.js';
import { make, roving } from './elements.js';
import { percent } from './numbers.js';
import { Scene, shortened, textWidth } from './scene.js';
import { KINDS, sentence } from './sides.js';
import { strongest } from './weights.js';

const LISTED = 5;
// With more words than this, the text is taller than a phone's screen.
const LONG = 60;

export function drawWords(stage, { matrix, choice, say }) {
  const names = KINDS[choice.kind];
  const keys = paragraph(names.keys, 'key', matrix.keys);
  const queries = paragraph(names.queries, 'query', matrix.queries);
  const readout = make('div', { class: 'readout' });
  const long = matrix.keys.length + matrix.queries.length > LONG;
  stage.append(make('div', { class: long ? 'words long' : 'words' }, keys.element, queries.element, readout));

  let pinned = { side: 'query', index: 0 };
  let shown = pinned;
  const show = ({ side, index }) => {
    shown = { side, index };
    const [own, other] = side === 'query' ? [queries, keys] : [keys, queries];
    own.buttons.forEach((button, i) => tint(button, 0, i === index));
    const top = strongest(matrix, side, index, other.buttons.length);
    const full = Math.max(top[0]?.weight ?? 0, 1e-6);
    for (const link of top) tint(other.buttons[link.index], link.weight / full, false);
    readout.replaceChildren(...described(matrix, side, index, top.slice(0, LISTED)));
  };
  const announce = ({ side, index }) => say(sentence(matrix, side, index, strongest(matrix, side, index, 3), percent));

  for (const { side, element, buttons } of [keys, queries]) {
    roving(element, buttons);
    buttons.forEach((button, index) => {
      button.addEventListener('pointerenter', () => show({ side, index }));
      for (const event of ['focus', 'click']) {
        button.addEventListener(event, () => {
          pinned = { side, index };
          show(pinned);
          announce(pinned);
        });
      }
    });
    element.addEventListener('pointerleave', () => show(pinned));
  }
  stage.append(make('p', { class: 'hint' }, 'Hover, tap or focus a word to see what it attended to, or what attended to it.'));
  if (matrix.queries.length > 0) show(pinned);
  // Opening a menu moves the pointer: the picture shows the pinned word.
  return { scene: () => wordsScene(matrix, names, pinned, stage.clientWidth), shown: () => shown };
}

function paragraph(title, side, units) {
  const buttons = units.map((unit, index) => make('button', {
    type: 'button',
    class: unit.special ? 'word special' : 'word',
    'data-side': side,
    'data-index': index,
  }, unit.label));
  const text = make('p', { class: 'running', dir: directionOf(units) });
  buttons.forEach((button, index) => {
    if (index > 0 && isApart(units[index])) text.append(' ');
    text.append(button);
  });
  const element = make('section', { class: 'sentence', 'aria-label': title }, make('h3', {}, title), text);
  return { side, element, buttons };
}

// Words of languages with spaces are separated, pieces of one word stay together.
function isApart(unit) {
  return unit.pieces[0].startsWith('▁') || unit.special;
}

function tint(button, share, chosen) {
  button.style.setProperty('--share', share.toFixed(3));
  button.classList.toggle('chosen', chosen);
}

function described(matrix, side, index, links) {
  const own = side === 'query' ? matrix.queries[index] : matrix.keys[index];
  const others = side === 'query' ? matrix.keys : matrix.queries;
  const probability = side === 'query' && own.log_probability !== null ? ` (predicted with ${percent(Math.exp(own.log_probability))})` : '';
  const title = make('h3', {}, make('strong', { dir: 'auto' }, own.label), probability, side === 'query' ? ' attended to' : ' was attended to by');
  const list = make('ol', { class: 'bars' });
  for (const { index: other, weight } of links) {
    const bar = make('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', Math.min(1, weight).toFixed(3));
    list.append(make('li', {}, make('span', { class: 'name', dir: 'auto' }, others[other].label), bar, make('span', { class: 'value' }, percent(weight))));
  }
  return [title, list];
}

const [SIZE, ROW, PAD] = [18, 34, 4];
const READOUT = 280;

// The same as a picture: both texts with their shades, and the strongest links as bars.
function wordsScene(matrix, names, { side, index }, space) {
  const colours = theme();
  const shades = tints();
  const links = strongest(matrix, side, index, Math.max(matrix.keys.length, matrix.queries.length));
  const full = Math.max(links[0]?.weight ?? 0, 1e-6);
  const shares = new Map(links.map((link) => [link.index, link.weight / full]));
  const width = Math.max(320, space - READOUT - 40);
  const text = new Scene(width, 0, colours.panel);
  let y = 0;
  for (const [own, units, title] of [['key', matrix.keys, names.keys], ['query', matrix.queries, names.queries]]) {
    const rtl = directionOf(units) === 'rtl';
    text.text(rtl ? width : 0, y + 14, title, { size: 13, fill: colours.soft, anchor: rtl ? 'end' : 'start' });
    y += 26;
    let x = 0;
    units.forEach((unit, i) => {
      const size = unit.special ? 13 : SIZE;
      const label = shortened(unit.label, size, width - 2 * PAD);
      const wide = textWidth(label, size) + 2 * PAD;
      if (i > 0 && isApart(unit)) x += 5;
      if (x > 0 && x + wide > width) {
        x = 0;
        y += ROW;
      }
      const left = rtl ? width - x - wide : x;
      const chosen = own === side && i === index;
      if (chosen) text.rect(left - 1, y - 1, wide + 2, 29, colours.heat, '', 6);
      text.rect(left + (chosen ? 1 : 0), y + (chosen ? 1 : 0), wide - (chosen ? 2 : 0), chosen ? 25 : 27, css(shades[own === side ? 0 : Math.round(255 * (shares.get(i) ?? 0))]), '', 5);
      text.text(left + wide / 2, y + 20, label, { size, anchor: 'middle', fill: unit.special ? colours.soft : colours.ink });
      x += wide;
    });
    y += ROW + 14;
  }
  const picture = new Scene(width + 40 + READOUT, Math.max(y, 60 + LISTED * 26), colours.panel);
  picture.add(text, 0, 0);
  const [left, others] = [width + 40, side === 'query' ? matrix.keys : matrix.queries];
  const own = (side === 'query' ? matrix.queries : matrix.keys)[index];
  picture.text(left, 14, shortened(`${own.label} ${side === 'query' ? 'attended to' : 'was attended to by'}`, 14, READOUT), { size: 14, weight: 650, fill: colours.ink });
  links.slice(0, LISTED).forEach(({ index: other, weight }, i) => {
    const row = 34 + i * 26;
    picture.text(left, row + 12, shortened(others[other].label, 14, 92), { size: 14, fill: colours.ink });
    picture.rect(left + 100, row + 3, 120, 8, colours.edge, '', 4);
    picture.rect(left + 100, row + 3, 120 * Math.min(1, weight), 8, colours.heat, '', 4);
    picture.text(left + READOUT, row + 12, percent(weight), { size: 13, anchor: 'end', fill: colours.soft });
  });
  return picture;
}
