// The viewer in a file of its own: the explanations stand in the page, nothing is fetched.

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
  // What was on the screen when the page was saved, unless the address says otherwise.
  viewer.show(explanations, fromParameters(new URLSearchParams(location.hash.slice(1) || read('choice'))));
  showPair(viewer);
  if (explanations.length === 0) document.getElementById('pair').textContent = 'This page holds no sentence.';
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
