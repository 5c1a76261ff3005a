// Maps numbers to positions on an axis and back, with round numbers as ticks.

// `tight` ends the axis at the maximum value instead of the next round number.
export function axis(values, form, from, to, { tight = false } = {}) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const ticks = form === 'log' ? powers(low, high) : roundNumbers(low, high, 4);
  const [move, back] = form === 'log' ? [Math.log10, (value) => 10 ** value] : [(value) => value, (value) => value];
  const [first, last] = [move(ticks[0]), move(tight ? Math.max(high, low + 1) : ticks.at(-1))];
  const span = last - first || 1;
  return {
    ticks,
    at: (value) => from + ((move(value) - first) / span) * (to - from),
    value: (place) => back(first + ((place - from) / (to - from)) * span),
  };
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

// Powers of ten around all values; for a range of one or two decades also 2 and 5 times these.
function powers(low, high) {
  const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
  const exponents = Array.from({ length: Math.max(1, last - first) + 1 }, (_, i) => first + i);
  if (exponents.length > 6) return exponents.filter((_, i) => i % Math.ceil(exponents.length / 6) === 0 || i === exponents.length - 1).map((exponent) => 10 ** exponent);
  if (exponents.length > 3) return exponents.map((exponent) => 10 ** exponent);
  const fine = exponents.flatMap((exponent) => [1, 2, 5].map((factor) => factor * 10 ** exponent));
  const start = fine.findLastIndex((tick) => tick <= low * (1 + 1e-9));
  const end = fine.findIndex((tick) => tick >= high * (1 - 1e-9));
  return fine.slice(Math.max(0, start), (end < 0 ? fine.length : Math.max(end, start + 1)) + 1);
}
