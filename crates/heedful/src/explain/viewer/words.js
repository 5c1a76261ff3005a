// Both sentences as running text. A word that is hovered, tapped or focused shows what it attended to.

import { make, roving } from './elements.js';
import { percent } from './numbers.js';
import { KINDS, sentence } from './sides.js';
import { strongest } from './weights.js';

const LISTED = 5;
// With more words than this the text is higher than a phone.
const LONG = 60;

export function drawWords(stage, { matrix, choice, say }) {
  const names = KINDS[choice.kind];
  const keys = paragraph(names.keys, 'key', matrix.keys);
  const queries = paragraph(names.queries, 'query', matrix.queries);
  const readout = make('div', { class: 'readout' });
  const long = matrix.keys.length + matrix.queries.length > LONG;
  stage.append(make('div', { class: long ? 'words long' : 'words' }, keys.element, queries.element, readout));

  let pinned = { side: 'query', index: 0 };
  const show = ({ side, index }) => {
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
  return {};
}

function paragraph(title, side, units) {
  const buttons = units.map((unit, index) => make('button', {
    type: 'button',
    class: unit.special ? 'word special' : 'word',
    'data-side': side,
    'data-index': index,
  }, unit.label));
  const text = make('p', { class: 'running' });
  buttons.forEach((button, index) => {
    // Words of languages with spaces are separated, pieces of one word stay together.
    if (index > 0 && (units[index].pieces[0].startsWith('▁') || units[index].special)) text.append(' ');
    text.append(button);
  });
  const element = make('section', { class: 'sentence', 'aria-label': title }, make('h3', {}, title), text);
  return { side, element, buttons };
}

function tint(button, share, chosen) {
  button.style.setProperty('--share', share.toFixed(3));
  button.classList.toggle('chosen', chosen);
}

function described(matrix, side, index, links) {
  const own = side === 'query' ? matrix.queries[index] : matrix.keys[index];
  const others = side === 'query' ? matrix.keys : matrix.queries;
  const probability = side === 'query' && own.log_probability !== null ? ` (generated with ${percent(Math.exp(own.log_probability))})` : '';
  const title = make('h3', {}, make('strong', {}, own.label), probability, side === 'query' ? ' attended to' : ' was attended to by');
  const list = make('ol', { class: 'bars' });
  for (const { index: other, weight } of links) {
    const bar = make('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', Math.min(1, weight).toFixed(3));
    list.append(make('li', {}, make('span', { class: 'name' }, others[other].label), bar, make('span', { class: 'value' }, percent(weight))));
  }
  return [title, list];
}
