import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { complaints } from './axe.js';
import { WAIT, shown, visit } from './browser.js';
import { startServer } from './server.js';
import { SHORT } from './texts.js';

const EXPECTED = { expected: ['403'] };

// Runs `work(url)` with a server that needs a key.
async function withKeys(work) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'heedful-keys-'));
  const file = path.join(folder, 'keys.json');
  await writeFile(file, JSON.stringify([{ key: 'open sesame' }]));
  const server = await startServer(['--keys', file]);
  try {
    await work(server.url);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function enter(page, key) {
  await page.$eval('#key-field', (field) => { field.value = ''; });
  await page.type('#key-field', key);
  await page.keyboard.press('Enter');
}

export function keys(at) {
  test('a server without keys does not ask for one', async () => {
    await visit(at.browser, `${at.url}/`, async (page) => {
      await page.waitForFunction(() => document.documentElement.dataset.ready, WAIT);
      assert.deepEqual(await page.$$eval('#key, #key-open', (elements) => elements.map((element) => element.hidden)), [true, true]);
    });
  });

  test('a server with keys asks for one, reports a wrong one, and keeps it in this tab only', async () => {
    await withKeys(async (url) => {
      await visit(at.browser, `${url}/#${new URLSearchParams({ text: SHORT })}`, async (page) => {
        await page.waitForSelector('#key:not([hidden])', WAIT);
        assert.equal(await page.$eval('#key-field', (field) => field === document.activeElement && field.type), 'password');
        assert.deepEqual(await complaints(page), []);
        assert.equal(await page.$eval('#status', (status) => status.textContent), '');
        await enter(page, 'guess');
        await page.waitForFunction(() => document.querySelector('#key-error').textContent === 'this API key is not known here', WAIT);
        assert.deepEqual(await complaints(page), []);
        await enter(page, 'open sesame');
        await shown(page);
        assert.equal(await page.$eval('#key', (form) => form.hidden), true);
        assert.ok(!page.url().includes('sesame'), 'no key in an address');
        await page.reload();
        await shown(page);
        assert.equal(await page.evaluate(() => [sessionStorage.getItem('heedful-key'), localStorage.getItem('heedful-key')].join()), 'open sesame,');
        await page.click('nav [data-page=runs]');
        await page.waitForSelector('.charts figure', WAIT);
      }, EXPECTED);
      // Another tab does not have the key.
      await visit(at.browser, `${url}/`, async (page) => {
        await page.waitForSelector('#key:not([hidden])', WAIT);
      }, EXPECTED);
    });
  });

  test('the key field fits on a phone, also in the dark theme', async () => {
    await withKeys(async (url) => {
      await visit(at.browser, `${url}/`, async (page) => {
        await page.waitForSelector('#key:not([hidden])', WAIT);
        const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(content <= screen, `${content} pixels`);
        assert.deepEqual(await complaints(page), []);
      }, { ...EXPECTED, scheme: 'dark', viewport: { width: 360, height: 740, deviceScaleFactor: 2, isMobile: true, hasTouch: true } });
    });
  });
}
