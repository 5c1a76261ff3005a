// A curve over the steps of a run.

import { makeSvg } from './elements.js';
import { short } from './numbers.js';

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [380, 210, 46, 14, 12, 26];
// More points than pixels cannot be seen; of each bucket the least and the greatest stay.
const BUCKETS = 300;

// `series`: [{ name, points: [[step, value], …] }]; the best of the last one is marked: 'low', 'high' or nothing.
export function chart(title, series, best) {
  const drawable = series.map(({ name, points }) => ({ name, points: thinned(points.filter(([, y]) => y !== null && Number.isFinite(y))) }));
  const all = drawable.flatMap(({ points }) => points);
  const label = `${title}: ${drawable.filter(({ points }) => points.length).map(({ name, points }) => `${name} ${short(points.at(-1)[1])} at step ${points.at(-1)[0]}`).join(', ')}`;
  const svg = makeSvg('svg', { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label });
  if (all.length === 0) return svg;
  const ticks = roundNumbers(Math.min(...all.map(([, y]) => y)), Math.max(...all.map(([, y]) => y)), 4);
  const steps = roundNumbers(0, Math.max(...all.map(([x]) => x)), 4);
  const x = scale(0, Math.max(1, ...all.map(([step]) => step)), LEFT, WIDTH - RIGHT);
  const y = scale(ticks[0], ticks.at(-1), HEIGHT - BOTTOM, TOP);
  for (const tick of ticks) {
    svg.append(makeSvg('line', { class: 'rule', x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }), makeSvg('text', { x: LEFT - 8, y: y(tick) + 4, 'text-anchor': 'end' }, short(tick)));
  }
  for (const step of steps) if (x(step) <= WIDTH - RIGHT + 1) svg.append(makeSvg('text', { x: x(step), y: HEIGHT - 6, 'text-anchor': 'middle' }, short(step)));
  drawable.forEach(({ points }, i) => {
    if (points.length === 0) return;
    svg.append(makeSvg('path', { class: `curve curve-${i + 1}`, d: points.map(([step, value], k) => `${k ? 'L' : 'M'}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join('') }));
    const [step, value] = points.at(-1);
    svg.append(makeSvg('circle', { class: `dot curve-${i + 1}`, cx: x(step), cy: y(value), r: 3 }));
  });
  const marked = drawable.at(-1).points;
  if (best && marked.length > 1) {
    const [step, value] = marked.reduce((a, b) => ((best === 'low' ? b[1] < a[1] : b[1] > a[1]) ? b : a));
    svg.append(makeSvg('circle', { class: `best curve-${drawable.length}`, cx: x(step), cy: y(value), r: 4.5 }, makeSvg('title', {}, `best ${short(value)} at step ${step}`)));
  }
  return svg;
}

function scale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

// 1, 2 or 5 times a power of ten, around all values.
function roundNumbers(low, high, count) {
  if (high <= low) [low, high] = [low - Math.max(1, Math.abs(low)) / 2, high + Math.max(1, Math.abs(high)) / 2];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((nice) => nice >= rough * (1 - 1e-9));
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
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
