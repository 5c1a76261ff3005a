// The page: translation, the viewer below it, training runs beside it.

import { emptyPage, models, onRefused } from './api.js';
import { Composer } from './composer.js';
import { KeyField } from './key.js';
import { RunsPage } from './runs.js';
import { copyAddress, readAddress, writeAddress } from './share.js';
import { themeSwitch } from './theme.js';
import { Viewer } from './viewer.js';

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

// Brings text, model and choices of an address onto the page.
function follow(wanted) {
  turnTo(wanted);
  if (page === 'runs' || served.length === 0) return;
  viewer.choice = wanted.choice;
  composer.setModels(served, wanted.model);
  if (wanted.text) composer.setText(wanted.text);
}

document.getElementById('theme').append(themeSwitch(() => { viewer.update(); runs.draw(); }));
document.querySelector('nav [data-page=translate]').addEventListener('click', (event) => {
  // Back to the text as it was left.
  event.preventDefault();
  turnTo({ page: 'translate' });
  remember();
});
// The page's own changes of the address are silent: this is a link that somebody followed.
addEventListener('hashchange', () => follow(readAddress()));

let served = [];
const keyField = new KeyField(start);
onRefused((why) => keyField.open(why));

async function start() {
  try {
    served = (await models()).filter(({ task }) => task === 'translate');
    const address = readAddress();
    composer.status.textContent = '';
    composer.setModels(served, address.model);
    // A server without translators watches a training.
    follow(served.length === 0 ? { ...address, page: 'runs' } : address);
    if (page === 'translate' && !address.text) composer.text.focus();
  } catch (error) {
    // The field for the key says itself what it is for.
    const said = keyField.isOpen ? '' : error.message;
    composer.status.textContent = error instanceof TypeError ? 'The server cannot be reached.' : said;
  }
}

await start();
document.documentElement.dataset.ready = 'yes';
