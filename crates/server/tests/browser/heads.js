import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints } from './axe.js';
import { WAIT, shown, translated, visit } from './browser.js';
import { ask } from './server.js';
import { OTHER, SHORT } from './texts.js';

export function heads(at) {
  test('all heads of one word are lines in their colours, and each can be hidden', async () => {
    const { results: [{ sentences: [{ explanation }] }] } = await ask(at.url, { text: SHORT, beam: 4, attention: 'rows' });
    const last = explanation.outputs[0].attention.filter(({ kind }) => kind === 'cross').at(-1);
    for (const scheme of ['light', 'dark']) {
      await translated(at.browser, at.url, SHORT, async (page) => {
        const drawn = () => page.$$eval('.word-heads path', (paths) => paths.map((path) => path.getAttribute('stroke')));
        const strong = last.heads.map((rows) => rows[0].filter((weight) => weight >= 0.05).length);
        assert.equal((await drawn()).length, strong.reduce((sum, count) => sum + count, 0));
        assert.equal(new Set(await drawn()).size, last.heads.length, 'a colour for each head');
        assert.deepEqual(await complaints(page), []);
        await page.click('.head-key [data-head="1"]');
        assert.equal((await drawn()).length, strong.reduce((sum, count, head) => sum + (head === 1 ? 0 : count), 0));
        await page.click('.word-heads [data-side=query][data-index="1"]');
        assert.match(await page.$eval('#viewer [aria-live]', (live) => live.textContent), /head 0 attended most to /);
        assert.equal(await page.$eval('.word-heads .lit', (word) => word.dataset.index), '1');
      }, { choice: { view: 'colours', level: 'token' }, scheme });
    }
  });

  test('layers × heads are small lines, too, with a legend', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      const tiles = await page.$$eval('.tile canvas', (maps) => maps.length);
      await page.click('#viewer [data-value=lines].x, #viewer .segmented [data-value=lines]');
      assert.equal((await page.$$('.tile .small-lines')).length, tiles);
      assert.ok((await page.$$('.small-lines path')).length >= tiles);
      assert.ok(await page.$('#viewer .legend'));
      assert.ok(page.url().includes('form=lines'));
      assert.deepEqual(await complaints(page), []);
      await page.click('.tile');
      await page.waitForSelector('.lines .end');
    }, { choice: { view: 'grid' } });
  });

  test('a word shows its alternatives, and the translation continues from one of them', async () => {
    const { results: [{ sentences: [{ explanation }] }] } = await ask(at.url, { text: SHORT, beam: 4, alternatives: 6 });
    const [first] = explanation.outputs[0].tokens;
    const other = first.alternatives.find(({ piece }) => piece !== first.piece && /^▁\p{L}+$/u.test(piece));
    const prefix = other.piece.slice(1);
    const { results: [{ text: expected }] } = await ask(at.url, { text: SHORT, beam: 4, prefix });
    await translated(at.browser, at.url, SHORT, async (page) => {
      const before = await page.$eval('#output', (output) => output.textContent);
      await page.click('#output .output-word');
      await page.waitForSelector('.alternatives .alternative');
      assert.deepEqual(await page.$$eval('.alternative', (rows) => rows.map((row) => row.dataset.piece)), first.alternatives.map(({ piece }) => piece));
      assert.deepEqual(await complaints(page), []);
      await page.keyboard.press('Escape');
      assert.equal(await page.$('.alternatives'), null);
      assert.ok(await page.$eval('#output .output-word', (word) => word === document.activeElement), 'the keyboard is back where it was');
      await page.click('#output .output-word');
      await page.click(`.alternative[data-piece="${other.piece}"]`);
      await page.waitForFunction((text) => document.getElementById('output').textContent === text, WAIT, expected);
      assert.ok(expected.startsWith(prefix), expected);
      // A link restores it.
      await visit(at.browser, page.url(), async (second) => {
        await shown(second);
        assert.equal(await second.$eval('#output', (output) => output.textContent), expected);
      });
      await page.click('.forced .chip');
      await page.waitForFunction((text) => document.getElementById('output').textContent === text, WAIT, before);
    });
  });

  test('heads can be switched off if the server supports it, and the page shows the change', async () => {
    await visit(at.browser, `${at.url}/`, async (page) => {
      const asked = [];
      page.on('request', async (request) => {
        const url = new URL(request.url());
        const answer = (body) => request.respond({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
        if (url.pathname === '/openapi.json') {
          const description = await (await fetch(`${at.url}/openapi.json`)).json();
          description.components.schemas.TranslateRequest.properties.without_heads = { type: 'array' };
          answer(description);
        } else if (url.pathname === '/v1/translate' && request.postData().includes('without_heads')) {
          const { without_heads: names, ...rest } = JSON.parse(request.postData());
          asked.push(names);
          // Stands for the output with another set of heads.
          answer(await ask(at.url, { ...rest, text: OTHER }));
        } else {
          request.continue();
        }
      });
      await page.setRequestInterception(true);
      await page.goto(`${at.url}/#${new URLSearchParams({ text: SHORT, view: 'grid' })}`);
      await page.reload();
      await shown(page);
      await page.waitForSelector('.head-switch', WAIT);
      const whole = await page.$eval('#output', (output) => output.textContent);
      await page.click('.head-switch[data-name="decoder.0.cross.1"]');
      await page.waitForFunction((text) => document.querySelector('.with-all')?.textContent === `With all heads: ${text}`, WAIT, whole);
      assert.deepEqual(asked.at(-1), ['decoder.0.cross.1']);
      assert.equal(await page.$eval('.head-switch[data-name="decoder.0.cross.1"]', (button) => button.getAttribute('aria-checked')), 'false');
      assert.ok(page.url().includes('without=decoder.0.cross.1'));
      assert.deepEqual(await complaints(page), []);
      await page.click('.forced .chip');
      await page.waitForFunction((text) => document.getElementById('output').textContent === text, WAIT, whole);
    });
  });
}
