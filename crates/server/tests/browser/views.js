import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WAIT, choose, translated } from './browser.js';
import { ask } from './server.js';
import { LONG, SHORT } from './texts.js';

// The tokens that an output token attended to, strongest first, computed from the server's weights.
async function attended(url, query, layer, head) {
  const { results: [{ sentences: [{ explanation }] }] } = await ask(url, { text: SHORT, beam: 4, attention: 'rows' });
  const { attention, tokens } = explanation.outputs[0];
  const row = attention.filter(({ kind }) => kind === 'cross').find((known) => known.layer === `decoder.${layer}.cross`).heads[head][query];
  const links = row.map((weight, key) => ({ weight, piece: shown(explanation.source.tokens[key]) })).sort((a, b) => b.weight - a.weight);
  return { piece: shown(tokens[query]), links };
}

const shown = ({ piece }) => piece.replaceAll('▁', '·');

export function views(at) {
  test('a hovered or focused word shows what it attended to', async () => {
    const first = await attended(at.url, 0, 0, 1);
    const second = await attended(at.url, 1, 0, 1);
    await translated(at.browser, at.url, SHORT, async (page) => {
      const read = () => page.evaluate(() => ({
        piece: document.querySelector('.readout strong').textContent,
        names: [...document.querySelectorAll('.bars .name')].map((name) => name.textContent),
        fullest: [...document.querySelectorAll('.word[data-side=key]')].filter((word) => word.style.getPropertyValue('--share') === '1.000').map((word) => word.textContent),
      }));
      await page.hover('.word[data-side=query][data-index="0"]');
      assert.equal((await read()).piece, first.piece);
      assert.equal((await read()).names[0], first.links[0].piece);
      assert.ok((await read()).fullest.includes(first.links[0].piece));
      await page.focus('.word[data-side=query][data-index="0"]');
      await page.keyboard.press('ArrowRight');
      assert.equal((await read()).piece, second.piece);
      assert.equal((await read()).names[0], second.links[0].piece);
      assert.match(await page.$eval('#viewer [aria-live]', (live) => live.textContent), /attended to/);
    }, { choice: { level: 'token', layer: 'decoder.0.cross', head: 1 } });
  });

  test('another head shows other weights', async () => {
    const [one, two] = [await attended(at.url, 0, 0, 0), await attended(at.url, 0, 0, 1)];
    await translated(at.browser, at.url, SHORT, async (page) => {
      for (const [head, { links }] of [['0', one], ['1', two]]) {
        await choose(page, 'Head', head);
        const shares = await page.$$eval('.bars .value', (values) => values.map((value) => Number.parseFloat(value.textContent)));
        assert.ok(Math.abs(shares[0] - 100 * links[0].weight) <= 0.51, `${shares[0]} is not ${100 * links[0].weight}`);
      }
    }, { choice: { level: 'token', layer: 'decoder.0.cross' } });
  });

  test('lines join words, and a tapped word keeps its lines', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      assert.ok((await page.$$('.lines .rest path')).length > 0);
      await page.click('.lines [data-side=query][data-index="0"]');
      assert.ok((await page.$$('.lines.holding .held path')).length > 0);
      await page.click('#viewer [data-value=alignment]');
      assert.equal((await page.$$('#viewer .dropdown')).length, 0, 'an alignment has no heads');
    }, { choice: { view: 'lines' } });
  });

  test('the matrix can be read with the keyboard and as a table', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      await page.focus('.map canvas');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowRight');
      const cell = await page.$eval('.cell', (cell) => cell.textContent);
      assert.match(cell, /attended to .*%/);
      assert.equal(await page.$eval('#viewer [aria-live]', (live) => live.textContent), cell);
      await page.click('.table summary');
      await page.waitForSelector('.table table');
      await page.setViewport({ width: 900, height: 700 });
      await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
      assert.ok(await page.$('.table[open] table'), 'what was opened stays open in a window of another size');
      const [rows, columns] = await page.$eval('.table table', (table) => [table.tBodies[0].rows.length, table.tHead.rows[0].cells.length - 1]);
      assert.equal(await page.$eval('.map canvas', (canvas) => canvas.getAttribute('aria-label').match(/(\d+) rows × (\d+) columns/).slice(1, 3).map(Number).join()), `${rows},${columns}`);
    }, { choice: { view: 'matrix' } });
  });

  test('all heads are small maps, and a click opens one', async () => {
    const { results: [{ sentences: [{ explanation }] }] } = await ask(at.url, { text: SHORT, beam: 4, attention: 'packed' });
    const layers = explanation.outputs[0].attention.filter(({ kind }) => kind === 'encoder');
    await translated(at.browser, at.url, SHORT, async (page) => {
      assert.equal((await page.$$('.tile')).length, layers.reduce((sum, { heads }) => sum + heads.length, 0));
      assert.equal(await page.$eval('.tile[data-layer="encoder.0.self"][data-head="1"]', (tile) => tile.getAttribute('aria-label')), 'head 1 of encoder.0.self: open');
      await page.click('.tile[data-layer="encoder.0.self"][data-head="1"]');
      await page.waitForSelector('.map canvas');
      const address = new URLSearchParams(new URL(page.url()).hash.slice(1));
      assert.deepEqual(['layer', 'head'].map((name) => address.get(name)), ['encoder.0.self', '1'], 'a head has one name, in addresses too');
    }, { choice: { view: 'grid', kind: 'encoder' } });
  });

  test('the alternatives are a tree, and one of them can be shown', async () => {
    const { results: [{ sentences: [{ explanation: { outputs } }] }] } = await ask(at.url, { text: SHORT, beam: 4, n_best: 4 });
    await translated(at.browser, at.url, SHORT, async (page) => {
      await page.click('#viewer [data-value=tree]');
      await page.waitForFunction((count) => document.querySelectorAll('.leaf').length === count, WAIT, outputs.length);
      await page.click('.leaf[data-output="1"]');
      await page.waitForSelector('.leaf[data-output="1"][aria-pressed=true]');
      await page.click('#viewer [data-value=words]');
      const joined = await page.$$eval('.word[data-side=query]:not(.special)', (words) => words.map((word) => word.textContent).join(''));
      assert.equal(joined, outputs[1].text.replaceAll(/\s/g, ''));
    });
  });

  test('a sentence of 150 tokens is drawn in every view within the screen', async () => {
    await translated(at.browser, at.url, LONG, async (page) => {
      const { width, height, rows, painted } = await page.$eval('.map canvas', (canvas) => {
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return { width: canvas.width, height: canvas.height, rows: Number(canvas.getAttribute('aria-label').match(/(\d+) rows/)[1]), painted: pixels.some((value) => value > 0) };
      });
      assert.ok(rows >= 150, `${rows} rows`);
      assert.ok(width <= 1280 && height <= 900, `${width} × ${height}`);
      assert.ok(painted);
      for (let i = 0; i < 4; i++) await page.click('.zoom [aria-label=Larger]');
      await page.$eval('.map', (map) => { map.scrollTop = map.scrollHeight; });
      assert.ok(await page.$eval('.map', (map) => map.scrollTop) > 0);
      assert.ok(await page.$eval('.map canvas', (canvas) => canvas.width) <= 1280);
      for (const [view, selector] of [['words', '.word[data-side=query]'], ['lines', '.lines .end'], ['grid', '.tile canvas']]) {
        await page.click(`#viewer [data-value=${view}]`);
        assert.ok((await page.$$(selector)).length > 0, view);
      }
    }, { choice: { view: 'matrix', kind: 'encoder', level: 'token' } });
  });
}
