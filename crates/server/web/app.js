// The pages: translation, classification and writing if such models are served, and training runs.

import { models, onRefused } from './api.js';
import { ClassifyPage } from './classify-page.js';
import { KeyField } from './key.js';
import { Retry } from './retry.js';
import { RunsPage } from './runs.js';
import { readAddress } from './share.js';
import { themeSwitch } from './theme.js';
import { TranslatePage } from './translate-page.js';
import { WritePage } from './write-page.js';

const element = (id) => document.getElementById(id);
const TASKS = { translate: 'translate', classify: 'classify', write: 'generate' };
const pages = {
  translate: new TranslatePage(element('translate')),
  classify: new ClassifyPage(element('classify')),
  write: new WritePage(element('write')),
};
const runs = new RunsPage(element('runs'));
let served = [];
let page = 'translate';

const of = (name) => served.filter(({ task }) => task === TASKS[name]);

function showPage(wanted, run) {
  page = wanted;
  for (const name of [...Object.keys(pages), 'runs']) element(name).hidden = name !== page;
  for (const link of document.querySelectorAll('nav [data-page]')) {
    if (link.dataset.page === page) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (page === 'runs') runs.open(run);
  else runs.close();
}

// A page without a model redirects to a page with one; a server without models shows the training runs.
function available(wanted) {
  if (wanted === 'runs' || of(wanted).length > 0) return wanted;
  return Object.keys(pages).find((name) => of(name).length > 0) ?? 'runs';
}

// Applies the state in the URL to the page.
function follow(address) {
  showPage(available(address.page), address.run);
  if (page !== 'runs') pages[page].follow(of(page), address);
}

element('theme').append(themeSwitch(() => { pages.translate.draw(); runs.draw(); }));
for (const link of document.querySelectorAll('nav [data-page]:not([data-page=runs])')) {
  link.addEventListener('click', (event) => {
    // Back to the previous text.
    event.preventDefault();
    const { page: wanted } = link.dataset;
    showPage(wanted);
    pages[wanted].enter(of(wanted));
  });
}
// The page changes its own URL without this event, so this is a followed link.
addEventListener('hashchange', () => follow(readAddress()));

const keyField = new KeyField(start);
onRefused((why) => keyField.open(why));
const retry = new Retry(start, (sentence) => pages.translate.say(sentence, true));

async function start() {
  try {
    served = await models();
    retry.succeeded();
    const address = readAddress();
    pages.translate.say('');
    for (const name of Object.keys(pages)) document.querySelector(`nav [data-page=${name}]`).hidden = of(name).length === 0;
    follow(address);
    if (page !== 'runs' && !address.text) pages[page].focus();
  } catch (error) {
    // The key field already explains the error.
    if (keyField.isOpen) pages.translate.say('');
    else retry.failed(error);
  }
}

await start();
document.documentElement.dataset.ready = 'yes';
