// Screenshots of the page, for docs/pictures: `cargo xtask page-pictures MODEL` runs this with a model of the
// demo. The first argument is the output folder.

import path from 'node:path';
import { launch, translated, visit } from './browser.js';
import { startServer } from './server.js';
import { HEBREW, LONG, SHORT } from './texts.js';

const [folder] = process.argv.slice(2);
const PHONE = { width: 390, height: 844, deviceScaleFactor: 2 };
// 75 words of several sentences, twice.
const SENTENCES = '她昨天买的那本书很有趣。我们需要一套自动驾驶解决方案。这辆红色的新车很贵。'.repeat(8);

// By name: the text, the choices, and the screen.
const PICTURES = [
  ['first-screen', null, {}, {}],
  ['lines', SHORT, { view: 'lines' }, {}],
  ['all-heads-of-a-word', SHORT, { view: 'colours' }, {}],
  ['every-head', SHORT, { view: 'grid' }, {}],
  ['dark', SHORT, { view: 'matrix', level: 'token' }, { scheme: 'dark' }],
  ['phone', SHORT, { view: 'words' }, { viewport: PHONE }],
  ['phone-dark', LONG, { view: 'matrix' }, { viewport: PHONE, scheme: 'dark' }],
  ['right-to-left', HEBREW, { view: 'lines' }, {}],
  ['many-words', SENTENCES, { view: 'lines' }, {}],
];

const server = await startServer();
const browser = await launch();
try {
  for (const [name, text, choice, options] of PICTURES) {
    const take = async (page) => {
      await page.evaluate(() => document.activeElement?.blur());
      await page.screenshot({ path: path.join(folder, `page-${name}.webp`), type: 'webp', quality: 70 });
      console.log(name);
    };
    if (text === null) await visit(browser, `${server.url}/`, take, options);
    else await translated(browser, server.url, text, take, { choice, ...options });
  }
} finally {
  await browser.close();
  await server.stop();
}
