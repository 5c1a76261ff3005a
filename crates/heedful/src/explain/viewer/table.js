// The matrix as a table, for screen readers and for copying numbers. Built when it is opened.

import { make } from './elements.js';
import { percent } from './numbers.js';
import { KINDS } from './sides.js';
import { strongest } from './weights.js';

// With more columns than this, every row only lists its strongest links.
const WHOLE = 24;
const STRONGEST = 5;

export function tableOf(matrix, kind) {
  const details = make('details', { class: 'table' }, make('summary', {}, 'As a table'));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) {
      details.append(make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Attention as a table' }, matrix.keys.length <= WHOLE ? whole(matrix, kind) : top(matrix, kind)));
    }
  });
  return details;
}

function whole(matrix, kind) {
  const head = make('tr', {}, make('th', { scope: 'col' }, `${KINDS[kind].queries} ↓ ${KINDS[kind].keys} →`), matrix.keys.map(({ label }) => make('th', { scope: 'col', dir: 'auto' }, label)));
  const rows = matrix.queries.map(({ label }, i) => make('tr', {}, make('th', { scope: 'row', dir: 'auto' }, label),
    matrix.keys.map((_, j) => make('td', {}, percent(matrix.weights[i * matrix.keys.length + j])))));
  return table(head, rows);
}

function top(matrix, kind) {
  const head = make('tr', {}, make('th', { scope: 'col' }, KINDS[kind].queries), make('th', { scope: 'col', colspan: STRONGEST }, `attends most to (${KINDS[kind].keys})`));
  const rows = matrix.queries.map(({ label }, i) => make('tr', {}, make('th', { scope: 'row', dir: 'auto' }, label),
    strongest(matrix, 'query', i, STRONGEST).map(({ index, weight }) => make('td', {}, make('bdi', {}, matrix.keys[index].label), ` ${percent(weight)}`))));
  return table(head, rows);
}

function table(head, rows) {
  return make('table', {}, make('caption', {}, 'Attention of each row to each column'), make('thead', {}, head), make('tbody', {}, rows));
}
