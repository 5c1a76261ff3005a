// The page: translation, the viewer below it, training runs beside it.

import { emptyPage, models } from './api.js';
import { Composer } from './composer.js';
import { RunsPage } from './runs.js';
import { copyAddress, readAddress, writeAddress } from './share.js';
import { themeSwitch } from './theme.js';
import { Viewer } from './viewer.js';

const address = readAddress();

const remember = () => {
  if (page === 'translate') writeAddress({ text: composer.text.value, model: composer.model, choice: viewer.choice });
};
const viewer = new Viewer(document.getElementById('viewer'), {
  changed: () => {
    remember();
    // The tree and an alternative need more than the best output.
    composer.ask();
  },
  offline: emptyPage,
  share: async () => {
    const said = await copyAddress();
    document.getElementById('status').textContent = said;
    return said;
  },
});
const composer = new Composer({
  found: (explanations) => viewer.show(explanations),
  edited: () => {
    // Alternatives were those of another text.
    viewer.choice.output = 0;
    remember();
  },
  picked: (sentence) => viewer.change({ sentence, output: 0 }),
  alternatives: () => viewer.choice.view === 'tree' || viewer.choice.output > 0,
});
const runs = new RunsPage(document.getElementById('runs'));
let page = 'translate';

function turnTo({ page: wanted, run }) {
  page = wanted;
  for (const name of ['translate', 'runs']) document.getElementById(name).hidden = name !== page;
  for (const link of document.querySelectorAll('nav [data-page]')) {
    if (link.dataset.page === page) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (page === 'runs') runs.open(run);
  else runs.close();
}

document.getElementById('theme').append(themeSwitch(() => { viewer.update(); runs.draw(); }));
document.querySelector('nav [data-page=translate]').addEventListener('click', (event) => {
  // Back to the text as it was left.
  event.preventDefault();
  turnTo({ page: 'translate' });
  remember();
});
addEventListener('hashchange', () => turnTo(readAddress()));
turnTo(address);

try {
  const served = (await models()).filter(({ task }) => task === 'translate');
  viewer.choice = address.choice;
  composer.setModels(served, address.model);
  if (served.length === 0) turnTo({ page: 'runs', run: address.run });
  else if (address.text) composer.setText(address.text);
  else if (page === 'translate') composer.text.focus();
} catch (error) {
  composer.status.textContent = error instanceof TypeError ? 'The server cannot be reached.' : error.message;
}
document.documentElement.dataset.ready = 'yes';
