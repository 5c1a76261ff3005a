// Downloads of the current view.

import { make } from './elements.js';

export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = make('a', { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads the blob after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export function saveSvg(name, scene) {
  save(`${name}.svg`, new Blob([scene.toSvg()], { type: 'image/svg+xml' }));
}

export async function savePng(name, scene) {
  save(`${name}.png`, await scene.toPng());
}

export function saveJson(name, explanations) {
  save(`${name}.json`, new Blob([JSON.stringify(explanations, null, 1)], { type: 'application/json' }));
}

// `empty` is the offline page without sentences, in which the data precede the script.
// `choice` is the encoded choice, as in the URL: the page opens with the same view.
export function savePage(name, empty, explanations, choice) {
  const fill = (page, id, nothing, value) => page.replace(`id="${id}">${nothing}`, () => `id="${id}">${embedded(value)}`);
  const full = fill(fill(empty, 'choice', '""', choice), 'explanations', '[]', explanations);
  save(`${name}.html`, new Blob([full], { type: 'text/html' }));
}

// JSON that cannot end the element that contains it.
export function embedded(value) {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// A file name from the first words of a sentence.
export function fileName(text) {
  const letters = text.normalize('NFC').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '');
  return [...letters].slice(0, 40).join('') || 'attention';
}
