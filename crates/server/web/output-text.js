// The translation as text; a click on a word shows its alternatives.

import { showAlternatives } from './alternatives.js';
import { make, roving } from './elements.js';
import { spelled, units } from './weights.js';

// `sentences`: from the server's response. `picked(sentence)`: a sentence was selected. `chosen(sentence,
// prefix)`: a prefix was chosen for the translation of a sentence. Returns the explanations of the
// translated sentences.
export function writeOutput(element, sentences, { picked, chosen }) {
  const explanations = [];
  const words = [];
  const text = make('span');
  sentences.forEach(({ before, explanation, after }, place) => {
    const best = explanation?.outputs[0];
    text.append(before ?? '');
    if (best) {
      const index = explanations.length;
      const parts = wordsOf(best, (prefix) => chosen(place, prefix));
      words.push(...parts.filter((part) => part instanceof Element));
      text.append(make('span', { 'data-sentence': index, on: { click: () => picked(index) } }, parts));
      explanations.push(explanation);
    } else {
      // Text that the model has not translated stays unchanged.
      text.append(explanation?.source.text ?? '');
    }
    text.append(after ?? '');
  });
  if (words.length > 0) roving(text, words);
  element.replaceChildren(text);
  return explanations;
}

// Splits the text into buttons for words and the text between them, which together
// reproduce it byte for byte.
function wordsOf({ text, tokens }, go) {
  const parts = [];
  let at = 0;
  for (const unit of units(tokens, 'word')) {
    const found = unit.special || unit.label === '␣' ? -1 : text.indexOf(unit.label, at);
    const token = tokens[unit.tokens[0]];
    if (found < 0 || !token.alternatives) continue;
    if (found > at) parts.push(text.slice(at, found));
    const before = tokens.slice(0, unit.tokens[0]).map(({ piece }) => piece).join('');
    const open = () => showAlternatives(button, token, (piece) => go(spelled(before + piece)));
    const button = make('button', { type: 'button', class: 'output-word', 'aria-haspopup': 'menu', 'aria-expanded': 'false', on: { click: open } }, unit.label);
    parts.push(button);
    at = found + unit.label.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}
