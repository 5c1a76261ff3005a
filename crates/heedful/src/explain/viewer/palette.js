// A colour for each head: eight that are distinguishable with every kind of colour vision (after Okabe and Ito), then the same with dashes.

const LIGHT = ['#0b5c8a', '#b34a00', '#00794f', '#9a3b7c', '#7d6608', '#4a3fb0', '#a3201d', '#4d5660'];
const DARK = ['#74c2ee', '#ff9d57', '#4fd1a0', '#ec9ad0', '#e5cf55', '#aaa2ff', '#ff8a80', '#b9c3cd'];
const DASHES = ['', '7 4', '2 4', '9 4 2 4'];

export function headColours(count) {
  const dark = getComputedStyle(document.body).colorScheme === 'dark' || (getComputedStyle(document.body).colorScheme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  const colours = dark ? DARK : LIGHT;
  return Array.from({ length: count }, (_, head) => ({ colour: colours[head % colours.length], dash: DASHES[Math.floor(head / colours.length) % DASHES.length], text: `head ${head}` }));
}
