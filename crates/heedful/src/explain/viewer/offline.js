// The viewer in a file of its own: the explanations stand in the page, nothing is fetched.

import { fromParameters, toParameters } from './choice.js';
import { make } from './elements.js';
import { themeSwitch } from './theme.js';
import { Viewer } from './viewer.js';

export function startOffline() {
  const explanations = JSON.parse(document.getElementById('explanations').textContent);
  const viewer = new Viewer(document.getElementById('viewer'), {
    changed: (choice) => {
      showPair(viewer);
      history.replaceState(null, '', `#${new URLSearchParams(toParameters(choice))}`);
    },
  });
  document.getElementById('theme').append(themeSwitch(() => viewer.update()));
  viewer.show(explanations, fromParameters(new URLSearchParams(location.hash.slice(1))));
  showPair(viewer);
  if (explanations.length === 0) document.getElementById('pair').textContent = 'This page holds no sentence.';
}

// The sentence and its output above everything else.
function showPair(viewer) {
  if (!viewer.explanation) return;
  const { source, outputs } = viewer.explanation;
  document.getElementById('pair').replaceChildren(
    make('p', { class: 'source' }, source.text),
    make('p', { class: 'output' }, outputs[viewer.choice.output].text),
  );
}
