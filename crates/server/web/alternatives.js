// A menu of the alternatives to a token, with their probabilities; a click continues the
// translation from one of them.

import { make } from './elements.js';
import { percent } from './numbers.js';
import { spelled, textOf } from './weights.js';

let open = null;

// Opens below `anchor`. `choose(piece)` is called with the selected alternative.
export function showAlternatives(anchor, { piece, alternatives }, choose) {
  closeAlternatives();
  const best = Math.exp(alternatives[0]?.log_probability ?? 0);
  const row = ({ piece: other, log_probability: log }) => {
    const text = nameOf(other);
    const bar = make('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', (Math.exp(log) / Math.max(best, 1e-9)).toFixed(3));
    const isOwn = other === piece;
    return make('button', { type: 'button', role: 'menuitem', class: 'alternative', 'data-piece': other, 'aria-current': isOwn ? 'true' : null, disabled: !canFollow(other), on: { click: () => { closeAlternatives(); if (!isOwn) choose(other); } } },
      make('span', { class: 'name', dir: 'auto' }, text), bar, make('span', { class: 'value' }, percent(Math.exp(log))));
  };
  const menu = make('div', { class: 'alternatives', role: 'menu', 'aria-label': `Instead of ${nameOf(piece)}` }, alternatives.map(row));
  (anchor.closest('main') ?? document.body).append(menu);
  place(menu, anchor);
  anchor.setAttribute('aria-expanded', 'true');
  open = { menu, anchor };
  menu.addEventListener('keydown', (event) => walk(event, menu));
  menu.querySelector('button:enabled')?.focus();
}

export function closeAlternatives() {
  if (!open) return;
  const { menu, anchor } = open;
  open = null;
  const hadFocus = menu.contains(document.activeElement);
  menu.remove();
  anchor.setAttribute('aria-expanded', 'false');
  if (hadFocus && anchor.isConnected) anchor.focus();
}

// The readable text of a token. Most words begin with a space, so only its absence is shown.
export function nameOf(piece) {
  if (piece === '<eos>') return '(end)';
  if (piece === '▁') return '(space)';
  if (textOf(piece).includes('\n')) return textOf(piece).trimStart().replaceAll('\n', '') || '⏎';
  const text = spelled(piece);
  return piece.startsWith('▁') || !/^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}]/u.test(text) ? text : `…${text}`;
}

// A prefix is text: it cannot contain `<eos>` or a part of a character.
function canFollow(piece) {
  return !textOf(piece).includes('\ufffd') && !/^<[a-z]+>$/.test(piece);
}

function place(menu, anchor) {
  const box = anchor.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, document.documentElement.clientWidth - menu.offsetWidth - 8));
  menu.style.setProperty('left', `${left + scrollX}px`);
  menu.style.setProperty('top', `${box.bottom + scrollY + 6}px`);
}

function walk(event, menu) {
  if (event.key === 'Escape' || event.key === 'Tab') {
    event.preventDefault();
    closeAlternatives();
    return;
  }
  const items = [...menu.querySelectorAll('button:enabled')];
  const next = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!next) return;
  event.preventDefault();
  items[(items.indexOf(document.activeElement) + next + items.length) % items.length]?.focus();
}

document.addEventListener('click', (event) => {
  if (open && !open.menu.contains(event.target) && !open.anchor.contains(event.target)) closeAlternatives();
});
