// Light or dark theme: that of the system, unless the reader chose one.

import { make } from './elements.js';

const NEXT = { auto: 'light', light: 'dark', dark: 'auto' };
const NAMES = { auto: 'as the system', light: 'light', dark: 'dark' };
const SIGNS = { auto: '◐', light: '☀', dark: '☾' };

// A button that cycles through system, light and dark. `changed` is called when the colours changed, also by the system.
export function themeSwitch(changed) {
  let mode = remembered();
  const sign = make('span', { 'aria-hidden': 'true' });
  const button = make('button', { type: 'button', class: 'theme' }, sign);
  const apply = () => {
    if (mode === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = mode;
    sign.textContent = SIGNS[mode];
    button.setAttribute('aria-label', `Colours: ${NAMES[mode]}`);
    button.title = `Colours: ${NAMES[mode]}`;
  };
  button.addEventListener('click', () => {
    mode = NEXT[mode];
    remember(mode);
    apply();
    changed();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  apply();
  return button;
}

// A page from a file may have no storage.
function remembered() {
  try {
    const mode = localStorage.getItem('heedful-theme');
    return mode in NEXT ? mode : 'auto';
  } catch {
    return 'auto';
  }
}

function remember(mode) {
  try {
    localStorage.setItem('heedful-theme', mode);
  } catch {
    // The choice is kept until the page is closed.
  }
}
