// Curves over the steps of runs, with the values under the pointer.

import { make, makeSvg } from './elements.js';
import { short } from './numbers.js';
import { axis } from './scale.js';

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [380, 210, 46, 14, 12, 26];
// There is no use in more points than pixels; each bucket keeps its minimum and maximum.
const BUCKETS = 300;

// `series`: [{ name, style, points: [[step, value], …], raw }]: raw points are drawn faintly behind the
// smoothed ones. `best` marks the best point of the last series: 'low', 'high' or null. `form` is the axis
// scale: 'linear' or 'log'.
export function chart(title, series, { best = null, form = 'linear' } = {}) {
  const good = ([, y]) => y !== null && Number.isFinite(y) && (form === 'linear' || y > 0);
  const drawable = series.map((one) => ({ ...one, points: one.points.filter(good), raw: one.raw?.filter(good) ?? [] })).filter(({ points }) => points.length > 0);
  const label = `${title}: ${drawable.map(({ name, points }) => `${name} ${short(points.at(-1)[1])} at step ${points.at(-1)[0]}`).join(', ')}`;
  const svg = makeSvg('svg', { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label });
  const figure = make('div', { class: 'plot' }, svg);
  if (drawable.length === 0) return figure;
  const all = drawable.flatMap(({ points, raw }) => [...points, ...raw]);
  const x = axis([0, ...all.map(([step]) => step)], 'linear', LEFT, WIDTH - RIGHT, { tight: true });
  const y = axis(all.map(([, value]) => value), form, HEIGHT - BOTTOM, TOP);
  for (const tick of y.ticks) {
    svg.append(makeSvg('line', { class: 'rule', x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(tick), y2: y.at(tick) }), makeSvg('text', { x: LEFT - 8, y: y.at(tick) + 4, 'text-anchor': 'end' }, short(tick)));
  }
  for (const step of x.ticks) if (x.at(step) <= WIDTH - RIGHT + 1) svg.append(makeSvg('text', { x: x.at(step), y: HEIGHT - 6, 'text-anchor': 'middle' }, short(step)));
  const path = (points) => thinned(points).map(([step, value], k) => `${k ? 'L' : 'M'}${x.at(step).toFixed(1)} ${y.at(value).toFixed(1)}`).join('');
  for (const { style, points, raw } of drawable) {
    if (raw.length > 0) svg.append(makeSvg('path', { class: `curve raw ${style}`, d: path(raw) }));
    svg.append(makeSvg('path', { class: `curve ${style}`, d: path(points) }));
    const [step, value] = points.at(-1);
    svg.append(makeSvg('circle', { class: `dot ${style}`, cx: x.at(step), cy: y.at(value), r: 3 }));
  }
  const { style, points } = drawable.at(-1);
  if (best && points.length > 1) {
    const [step, value] = points.reduce((a, b) => ((best === 'low' ? b[1] < a[1] : b[1] > a[1]) ? b : a));
    svg.append(makeSvg('circle', { class: `best ${style}`, cx: x.at(step), cy: y.at(value), r: 4.5 }, makeSvg('title', {}, `best ${short(value)} at step ${step}`)));
  }
  watchPointer(figure, svg, drawable, { x, y });
  return figure;
}

// A tooltip with the values of all curves at the step nearest to the pointer.
function watchPointer(figure, svg, drawable, { x, y }) {
  const rule = makeSvg('line', { class: 'pointer', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden' });
  const dots = drawable.map(({ style }) => makeSvg('circle', { class: `dot ${style}`, r: 3.5, visibility: 'hidden' }));
  svg.append(rule, ...dots);
  const tooltip = make('div', { class: 'tooltip', hidden: true });
  figure.append(tooltip);
  const leave = () => {
    tooltip.hidden = true;
    for (const part of [rule, ...dots]) part.setAttribute('visibility', 'hidden');
  };
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const at = x.value(((event.clientX - box.left) / box.width) * WIDTH);
    const nearest = drawable.map(({ points }) => points.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a)));
    const [step] = nearest.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
    rule.setAttribute('x1', x.at(step));
    rule.setAttribute('x2', x.at(step));
    rule.setAttribute('visibility', 'visible');
    nearest.forEach(([own, value], i) => {
      dots[i].setAttribute('cx', x.at(own));
      dots[i].setAttribute('cy', y.at(value));
      dots[i].setAttribute('visibility', 'visible');
    });
    tooltip.replaceChildren(make('strong', {}, `step ${step.toLocaleString('en')}`), ...drawable.map(({ name, style }, i) => make('span', { class: style }, `${name} ${short(nearest[i][1])}${nearest[i][0] === step ? '' : ` (step ${short(nearest[i][0])})`}`)));
    tooltip.hidden = false;
    tooltip.classList.toggle('on-the-left', x.at(step) > WIDTH / 2);
  });
  svg.addEventListener('pointerleave', leave);
}

function thinned(points) {
  if (points.length <= 2 * BUCKETS) return points;
  const size = Math.ceil(points.length / BUCKETS);
  const kept = [];
  for (let start = 0; start < points.length; start += size) {
    const bucket = points.slice(start, start + size);
    const by = (better) => bucket.reduce((a, b) => (better(b[1], a[1]) ? b : a));
    const [low, high] = [by((a, b) => a < b), by((a, b) => a > b)];
    kept.push(...(low === high ? [low] : [low, high].sort((a, b) => a[0] - b[0])));
  }
  return kept;
}
