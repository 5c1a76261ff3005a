// The page's state in its address, after the #: what is shared never reaches a server's log.

import { fromParameters, toParameters } from './choice.js';

// A text longer than this makes an address that some programs cut.
const LONGEST = 4000;

export function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  return { page: parameters.has('runs') ? 'runs' : 'translate', run: parameters.get('runs') || null, text: parameters.get('text') ?? '', model: parameters.get('model'), choice: fromParameters(parameters) };
}

export function writeAddress({ text, model, choice }) {
  const parameters = new URLSearchParams();
  if (text && text.length <= LONGEST) parameters.set('text', text);
  if (model) parameters.set('model', model);
  for (const [name, value] of toParameters(choice)) parameters.set(name, value);
  history.replaceState(null, '', `#${parameters}`);
}

export async function copyAddress() {
  return (await isCopied(location.href)) ? 'The link is copied.' : 'The browser did not let the link be copied: take it from the address bar.';
}

// Browsers have a clipboard only where the connection is safe or local, and may ask.
export async function isCopied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
