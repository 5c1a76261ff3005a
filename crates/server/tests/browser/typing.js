import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WAIT, shown, translated, visit } from './browser.js';
import { ask } from './server.js';
import { EVIL, OTHER, SHORT } from './texts.js';

const outputIs = (page, text) => page.waitForFunction((text) => document.getElementById('output').textContent === text, WAIT, text);
const ready = (page) => page.waitForFunction(() => document.documentElement.dataset.ready, WAIT);

export function typing(at) {
  test('a text is translated while typing', async () => {
    const { results: [{ text }] } = await ask(at.url, { text: SHORT, beam: 4 });
    await visit(at.browser, `${at.url}/`, async (page) => {
      await ready(page);
      await page.type('#text', SHORT);
      await outputIs(page, text);
      await shown(page);
      await page.$eval('#text', (field) => { field.value = ''; field.dispatchEvent(new Event('input')); });
      await outputIs(page, '');
      assert.equal(await page.$eval('#viewer', (viewer) => viewer.hidden), true);
    });
  });

  test('an older answer never replaces a newer one', async () => {
    const { results: [{ text: newer }] } = await ask(at.url, { text: OTHER, beam: 4 });
    await visit(at.browser, `${at.url}/`, async (page) => {
      await ready(page);
      let older = null;
      const held = new Promise((resolve) => {
        page.on('request', (request) => {
          const first = request.url().endsWith('/v1/translate') && request.postData().includes(SHORT);
          if (first) {
            older = request;
            resolve();
          } else {
            request.continue();
          }
        });
      });
      await page.setRequestInterception(true);
      await page.type('#text', SHORT);
      await held;
      await page.$eval('#text', (field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }, OTHER);
      await outputIs(page, newer);
      // The page has abandoned the first request; whether the browser has cancelled it does not matter.
      await older.respond({ status: 200, contentType: 'application/json', body: '{"results":[{"text":"old","sentences":[]}],"timings":{}}' }).catch(() => {});
      await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
      assert.equal(await page.$eval('#output', (output) => output.textContent), newer);
    });
  });

  test('several sentences keep their line breaks, and each can be selected', async () => {
    const text = `${SHORT}。\n\n${OTHER}。`;
    const { results: [{ text: expected }] } = await ask(at.url, { text, beam: 4 });
    await translated(at.browser, at.url, text, async (page) => {
      assert.equal(await page.$eval('#output', (output) => output.textContent), expected);
      assert.equal((await page.$$('#output [data-sentence]')).length, 2);
      assert.equal((await page.$$('#viewer .dropdown:first-child option')).length, 2);
    });
  });

  test('a long text is streamed, and the final text is the response', async () => {
    const text = Array(20).fill(`${SHORT}。`).join('\n');
    const { results: [{ text: expected }] } = await ask(at.url, { text, beam: 4 });
    await visit(at.browser, `${at.url}/`, async (page) => {
      await ready(page);
      const asked = page.waitForRequest((request) => request.url().endsWith('/v1/translate'));
      await page.$eval('#text', (field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }, text);
      assert.equal(JSON.parse((await asked).postData()).stream, true);
      await outputIs(page, expected);
      await shown(page);
      assert.equal((await page.$$('#output [data-sentence]')).length, 20);
    });
  });

  test('errors of the server are shown with their message', async () => {
    await visit(at.browser, `${at.url}/`, async (page) => {
      await ready(page);
      page.on('request', (request) => {
        if (request.url().endsWith('/v1/translate')) request.respond({ status: 503, contentType: 'application/json', body: '{"error":"too many wait: come back later"}' });
        else request.continue();
      });
      await page.setRequestInterception(true);
      await page.type('#text', SHORT);
      await page.waitForFunction(() => document.getElementById('status').textContent.startsWith('too many wait: come back later'), WAIT);
    }, { expected: ['503'] });
  });

  test('a link restores the text and all choices', async () => {
    let link = '';
    await translated(at.browser, at.url, SHORT, async (page) => {
      await page.click('#viewer [data-value=matrix]');
      await page.click('#viewer [data-value=encoder]');
      await page.click('#viewer [data-value=token]');
      link = page.url();
    });
    await visit(at.browser, link, async (page) => {
      await shown(page);
      assert.equal(await page.$eval('#text', (field) => field.value), SHORT);
      const chosen = await page.$$eval('#viewer [aria-selected=true], #viewer [aria-pressed=true]', (elements) => elements.map(({ dataset }) => dataset.value));
      assert.deepEqual(chosen, ['matrix', 'encoder', 'token']);
      // A link followed while the page is open.
      await page.evaluate((text) => { location.hash = new URLSearchParams({ text, view: 'lines' }); }, OTHER);
      await outputIs(page, (await ask(at.url, { text: OTHER, beam: 4 })).results[0].text);
      await page.waitForSelector('#viewer [data-value=lines][aria-selected=true]');
    });
  });

  test('script in a text stays text in every view', async () => {
    for (const view of ['words', 'lines', 'colours', 'matrix', 'grid', 'tree']) {
      await translated(at.browser, at.url, EVIL, async (page) => {
        assert.equal(await page.evaluate(() => window.hacked), undefined);
        assert.equal(await page.evaluate(() => document.querySelectorAll('img, #output script, #viewer script').length), 0);
        assert.equal(await page.$eval('#text', (field) => field.value), EVIL);
      }, { choice: { view } });
    }
  });
}
