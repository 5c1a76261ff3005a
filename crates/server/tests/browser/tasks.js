import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints } from './axe.js';
import { WAIT, shown, visit } from './browser.js';
import { withAllTasks } from './models.js';
import { OTHER, SHORT } from './texts.js';

const PHONE = { width: 360, height: 740, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

async function fits(page) {
  const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(content <= screen, `${content} pixels`);
}

async function post(url, route, request) {
  return (await fetch(`${url}${route}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request) })).json();
}

export function tasks(at) {
  test('every served task has its page', async () => {
    await withAllTasks(async (url) => {
      await visit(at.browser, `${url}/`, async (page) => {
        await page.waitForFunction(() => document.documentElement.dataset.ready, WAIT);
        const links = await page.$$eval('nav a:not([hidden])', (links) => links.map((link) => link.textContent));
        assert.deepEqual(links, ['Translate', 'Classify', 'Write', 'Training']);
      });
      await classifies(at, url);
      await writes(at, url);
      await swaps(at, url);
      await compares(at, url);
    });
  });
}

async function classifies(at, url) {
  const text = 'a wonderful day';
  const { results: [found] } = await post(url, '/v1/classify', { text });
  for (const options of [{}, { viewport: PHONE, scheme: 'dark' }]) {
    await visit(at.browser, `${url}/#${new URLSearchParams({ page: 'classify', text })}`, async (page) => {
      await page.waitForSelector('.labels li', WAIT);
      assert.equal(await page.$eval('.labels .first .name', (name) => name.textContent), found.label);
      assert.equal((await page.$$('.labels li')).length, Object.keys(found.probabilities).length);
      const shades = await page.$$eval('.attended .word', (words) => words.map((word) => [word.firstChild.textContent, Number(word.style.getPropertyValue('--share'))]));
      assert.deepEqual(shades.map(([word]) => word), found.words.map(({ word }) => word));
      const strongest = found.words.reduce((a, b) => (b.attention > a.attention ? b : a)).word;
      assert.equal(shades.find(([, share]) => share === 1)[0], strongest);
      assert.deepEqual(await complaints(page), []);
      await fits(page);
      await page.$eval('#classify-text', (field) => { field.value = ''; field.dispatchEvent(new Event('input')); });
      await page.waitForFunction(() => document.querySelector('.attended').hidden, WAIT);
    }, options);
  }
}

async function writes(at, url) {
  const request = { prompt: 'a red', temperature: 0, tokens: 60, alternatives: 8 };
  const { results: [found] } = await post(url, '/v1/generate', request);
  assert.ok(found.pieces.length > 0 && found.pieces.every(({ alternatives }) => alternatives.length === 8));
  for (const options of [{}, { viewport: PHONE, scheme: 'dark' }]) {
    await visit(at.browser, `${url}/#${new URLSearchParams({ page: 'write', text: 'a red', temperature: '0' })}`, async (page) => {
      await page.waitForSelector('#written .token', WAIT);
      assert.equal((await page.$$('#written .token')).length, found.pieces.length);
      assert.deepEqual(await complaints(page), []);
      await fits(page);
      await page.click('#written .token');
      const rows = await page.$$eval('.alternative', (rows) => rows.map((row) => row.dataset.piece));
      assert.deepEqual(rows, found.pieces[0].alternatives.map(({ piece }) => piece));
      assert.deepEqual(await complaints(page), []);
      const other = found.pieces[0].alternatives.find(({ piece }, i) => i > 0 && /^▁\p{L}+$/u.test(piece));
      if (!other) return;
      const asked = page.waitForRequest((request) => request.url().endsWith('/v1/generate'));
      await page.click(`.alternative[data-piece="${other.piece}"]`);
      assert.equal(JSON.parse((await asked).postData()).prompt, `a red ${other.piece.slice(1)}`);
      await page.waitForFunction(() => !document.querySelector('#written[aria-busy]'), WAIT);
      assert.ok((await page.$eval('#written .prompt', (prompt) => prompt.textContent)).endsWith(other.piece.slice(1)));
    }, options);
  }
}

async function swaps(at, url) {
  await visit(at.browser, `${url}/#${new URLSearchParams({ text: SHORT })}`, async (page) => {
    await shown(page);
    const output = await page.$eval('#output', (output) => output.textContent);
    await page.click('.swap');
    await page.waitForFunction((text) => document.getElementById('text').value === text, WAIT, output);
    assert.equal(await page.$eval('.model select', (select) => select.value), 'en-zh');
    // The text is Chinese again, which another model supports.
    await page.$eval('#text', (field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }, `${SHORT}，${OTHER}`);
    await page.waitForSelector('.pane-foot .chip:not([hidden])', WAIT);
    await page.click('.pane-foot .chip:not([hidden])');
    assert.equal(await page.$eval('.model select', (select) => select.value), 'zh-en');
  });
}

async function compares(at, url) {
  await visit(at.browser, `${url}/#${new URLSearchParams({ text: SHORT, view: 'lines' })}`, async (page) => {
    await shown(page);
    await page.click('.compare');
    await page.waitForFunction(() => document.querySelector('#viewer-2 .lines .end'), WAIT);
    await page.$eval('#text-2', (field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }, OTHER);
    await page.waitForFunction(() => !document.querySelector('.stale'), WAIT);
    // Both share one choice.
    await page.click('#viewer-2 [role=tab][data-value=matrix]');
    await page.waitForFunction(() => document.querySelector('#viewer .map canvas') && document.querySelector('#viewer-2 .map canvas'), WAIT);
    assert.deepEqual(await complaints(page), []);
    await visit(at.browser, page.url(), async (other) => {
      await shown(other);
      await other.waitForFunction(() => document.querySelector('#viewer-2 .map canvas'), WAIT);
      assert.deepEqual(await other.$$eval('textarea[id^=text]', (fields) => fields.map(({ value }) => value)), [SHORT, OTHER]);
    });
    await page.click('.compare');
    assert.equal(await page.$('#text-2'), null);
  });
}
