import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints } from './axe.js';
import { WAIT, shown, translated, visit } from './browser.js';
import { ask } from './server.js';
import { HEBREW, OTHER, SHORT } from './texts.js';

const isDim = (page) => page.waitForFunction(() => document.querySelector('#output.stale') && document.querySelector('#viewer.stale'), WAIT);
const isFresh = (page) => page.waitForFunction(() => !document.querySelector('.stale'), WAIT);

async function type(page, text) {
  await page.$eval('#text', (field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }, text);
}

export function states(at) {
  test('stale output is dim until the new translation arrives', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      let held = null;
      page.on('request', (request) => {
        if (request.url().endsWith('/v1/translate')) held = request;
        else request.continue();
      });
      await page.setRequestInterception(true);
      await type(page, OTHER);
      await isDim(page);
      assert.deepEqual(await complaints(page), [], 'dim is still legible');
      while (!held) await new Promise((resolve) => { setTimeout(resolve, 20); });
      await held.continue();
      await isFresh(page);
    });
  });

  test('a failed request leaves old results dim, and is retried automatically', async () => {
    const { results: [{ text: expected }] } = await ask(at.url, { text: OTHER, beam: 4 });
    await translated(at.browser, at.url, SHORT, async (page) => {
      let failures = 2;
      page.on('request', (request) => {
        if (!request.url().endsWith('/v1/translate') || failures === 0) {
          request.continue();
          return;
        }
        failures -= 1;
        if (failures === 1) request.abort('connectionrefused');
        else request.respond({ status: 503, contentType: 'application/json', headers: { 'Retry-After': '4' }, body: '{"error":"too many wait"}' });
      });
      await page.setRequestInterception(true);
      await type(page, OTHER);
      await page.waitForFunction(() => /^The server cannot be reached\. Trying again in \d+ s\.$/.test(document.getElementById('status').textContent), WAIT);
      await isDim(page);
      // Retry-After exceeds the two seconds of the second backoff.
      await page.waitForFunction(() => /^too many wait Trying again in [34] s/.test(document.getElementById('status').textContent), WAIT);
      await page.waitForFunction((text) => document.getElementById('output').textContent === text, WAIT, expected);
      await isFresh(page);
      assert.equal(await page.$eval('#status', (status) => status.classList.contains('bad')), false);
    }, { expected: ['ERR_CONNECTION_REFUSED', '503'] });
  });

  test('a text that is too long for a link gets a notice', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      await type(page, `${SHORT}。\n`.repeat(400));
      await page.waitForFunction(() => location.hash.includes('lost=text'), WAIT);
      assert.ok(!page.url().includes('text=%'));
      await shown(page);
      await page.click('#viewer .share');
      await page.waitForFunction(() => document.getElementById('status').textContent.includes('too long for a link'), WAIT);
      const link = page.url();
      await visit(at.browser, link, async (other) => {
        await other.waitForFunction(() => document.getElementById('status')?.textContent === 'The text was too long for this link: paste it here.', WAIT);
      });
    });
  });

  test('right-to-left text is drawn so in every view', async () => {
    for (const view of ['words', 'lines', 'colours', 'matrix', 'grid', 'tree']) {
      await translated(at.browser, at.url, HEBREW, async (page) => {
        assert.equal(await page.$eval('#text', (field) => getComputedStyle(field).direction), 'rtl');
        if (view === 'words') assert.equal(await page.$eval('.sentence .running', (text) => getComputedStyle(text).direction), 'rtl');
        if (view === 'lines') {
          const places = await page.$$eval('.lines .end[data-side=key] text', (texts) => texts.map((text) => text.getBoundingClientRect()).map(({ left, top }) => [left, top]));
          const isStacked = places.every(([, top]) => Math.abs(top - places[0][1]) < 2);
          assert.ok(!isStacked || places[0][0] > places.at(-1)[0], 'the first word stands on the right');
        }
        assert.deepEqual(await complaints(page), [], view);
      }, { choice: { view } });
    }
  });

  test('examples are offered, the language is detected and characters are counted', async () => {
    const [{ examples }] = await (await fetch(`${at.url}/v1/models`)).json();
    assert.ok(examples.length > 0, 'the demo samples sentences');
    await visit(at.browser, `${at.url}/`, async (page) => {
      await page.waitForSelector('.examples .chip', WAIT);
      assert.deepEqual(await page.$$eval('.examples .chip', (chips) => chips.map((chip) => chip.textContent)), examples);
      assert.deepEqual(await complaints(page), []);
      await page.click('.examples .chip');
      await shown(page);
      assert.equal(await page.$eval('#text', (field) => field.value), examples[0]);
      assert.equal(await page.$('.examples .chip'), null, 'they make way for the text');
      await page.waitForFunction(() => document.querySelector('.detected').textContent === 'Chinese detected', WAIT);
      const limit = (await (await fetch(`${at.url}/frontend/settings`)).json()).charLimit.toLocaleString('en');
      assert.equal(await page.$eval('.count', (count) => count.textContent), `${[...examples[0]].length} / ${limit}`);
    });
  });
}
