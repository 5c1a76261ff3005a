// The curves of one or several runs in the same charts.

import { chart } from './chart.js';
import { make } from './elements.js';
import { short } from './numbers.js';

// Metrics that share a chart; every other metric has its own chart.
const CHARTS = [
  { title: 'Loss', names: ['loss', 'valid_loss'], best: 'low' },
  { title: 'BLEU', names: ['valid_bleu'], best: 'high' },
  { title: 'Accuracy', names: ['accuracy', 'valid_accuracy'], best: 'high' },
  { title: 'Perplexity', names: ['valid_perplexity'], best: 'low' },
  { title: 'Learning rate', names: ['learning_rate'], best: null },
  { title: 'Gradient norm', names: ['gradient_norm'], best: null },
  { title: 'Tokens per second', names: ['tokens_per_second'], best: null },
  { title: 'Macro F1', names: ['valid_macro_f1'], best: 'high' },
  { title: 'Perplexity of a word', names: ['valid_word_perplexity'], best: 'low' },
  { title: 'Perplexity of a byte', names: ['valid_byte_perplexity'], best: 'low' },
  { title: 'Training FLOPs so far', names: ['flops'], best: null },
];
// The maximum number of runs: the number of distinct colours.
export const MAX_RUNS = 6;

// `runs`: [{ name, records }]; `smoothing` from 0 to 1; `form` is the axis scale.
export function curves(runs, { smoothing, form }) {
  const known = new Set(['step', 'seconds', 'samples', 'ending', ...CHARTS.flatMap(({ names }) => names)]);
  const others = [...new Set(runs.flatMap(({ records }) => records.flatMap(Object.keys)))].filter((name) => !known.has(name));
  const groups = [...CHARTS, ...others.map((name) => ({ title: name.replaceAll('_', ' '), names: [name], best: null }))];
  return groups.flatMap(({ title, names, best }) => {
    const series = runs.flatMap((run, i) => names.flatMap((name) => {
      const points = run.records.filter((record) => typeof record[name] === 'number').map((record) => [record.step, record[name]]);
      if (points.length === 0) return [];
      const role = names.length === 1 ? '' : name.startsWith('valid') ? 'validation' : 'training';
      const isSmoothed = smoothing > 0 && points.length > 2;
      return [{
        name: [runs.length > 1 ? run.name : '', role].filter(Boolean).join(' ') || title.toLowerCase(),
        style: runs.length > 1 ? `curve-${(i % MAX_RUNS) + 1}${role === 'training' ? ' thin' : ''}` : `curve-${role === 'validation' ? 2 : 1}`,
        points: isSmoothed ? smoothed(points, smoothing) : points,
        raw: isSmoothed ? points : [],
      }];
    }));
    if (series.length === 0) return [];
    const key = make('span', { class: 'key' }, series.map(({ name, style, points }) => make('span', { class: style }, `${series.length === 1 ? '' : `${name} `}${short(points.at(-1)[1])}`)));
    return [make('figure', { class: 'panel' }, make('figcaption', {}, make('h2', {}, title), key), chart(title, series, { best: runs.length > 1 ? null : best, form: title === 'Accuracy' || title === 'BLEU' ? 'linear' : form }))];
  });
}

// An exponential moving average with bias correction, so that curves do not start near zero.
function smoothed(points, weight) {
  let [sum, total] = [0, 0];
  return points.map(([step, value]) => {
    sum = sum * weight + value;
    total = total * weight + 1;
    return [step, sum / total];
  });
}
