// The direction of a text is that of its first letter, as with `dir="auto"` for elements. Used for pictures.

// Hebrew, Arabic, Syriac, Thaana, N'Ko and the following blocks, with their presentation forms.
const FIRST_LETTER = /[\p{L}]/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

export function direction(text) {
  const letter = text.match(FIRST_LETTER)?.[0] ?? '';
  return RIGHT_TO_LEFT.test(letter) ? 'rtl' : 'ltr';
}

// The direction of a sentence given as units.
export function directionOf(units) {
  return direction(units.filter(({ special }) => !special).map(({ label }) => label).join(' '));
}
