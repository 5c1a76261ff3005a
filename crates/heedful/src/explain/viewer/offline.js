// The viewer as a single file: the explanations are embedded in the page, nothing is fetched.

import { fromParameters, toParameters } from './choice.js';
import { make } from './elements.js';
import { themeSwitch } from './theme.js';
import { Viewer } from './viewer.js';

export function startOffline() {
  const explanations = read('explanations');
  const viewer = new Viewer(document.getElementById('viewer'), {
    changed: (choice) => {
      showPair(viewer);
      history.replaceState(null, '', `#${new URLSearchParams(toParameters(choice))}`);
    },
  });
  document.getElementById('theme').append(themeSwitch(() => viewer.update()));
  // The view at the time of saving, unless the URL has another one.
  viewer.show(explanations, fromParameters(new URLSearchParams(location.hash.slice(1) || read('choice'))));
  showPair(viewer);
  if (explanations.length === 0) document.getElementById('pair').textContent = 'This page has no sentences.';
}

function read(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

// The sentence and its output above everything else.
function showPair(viewer) {
  if (!viewer.explanation) return;
  const { source, outputs } = viewer.explanation;
  document.getElementById('pair').replaceChildren(
    make('p', { class: 'source', dir: 'auto' }, source.text),
    make('p', { class: 'output', dir: 'auto' }, outputs[viewer.choice.output].text),
  );
}
