// Formats numbers.

export function percent(share) {
  const value = share * 100;
  if (value > 0 && value < 0.1) return value < 0.001 ? '<0.001 %' : `${Number(value.toPrecision(1))} %`;
  return `${value >= 9.95 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
}

// Four digits at most: 12k, 3.4M, 2e-5.
export function short(value) {
  if (value === null || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  const digits = (number, count) => String(Number(number.toFixed(count)));
  if (size === 0) return '0';
  if (size >= 1e21) return value.toExponential(1).replace('.0e', 'e').replace('+', '');
  if (size >= 1e18) return `${digits(value / 1e18, 2)}E`;
  if (size >= 1e15) return `${digits(value / 1e15, 2)}P`;
  if (size >= 1e12) return `${digits(value / 1e12, 2)}T`;
  if (size >= 1e9) return `${digits(value / 1e9, 2)}G`;
  if (size >= 1e6) return `${digits(value / 1e6, 2)}M`;
  if (size >= 1e4) return `${digits(value / 1e3, 1)}k`;
  if (size >= 1000) return digits(value, 0);
  if (size >= 100) return digits(value, 1);
  if (size >= 10) return digits(value, 2);
  if (size >= 1) return digits(value, 3);
  if (size >= 0.01) return digits(value, 3);
  return value.toExponential(1).replace('.0e', 'e');
}
