import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { complaints } from './axe.js';
import { choose, download, translated, visit } from './browser.js';
import { ask } from './server.js';
import { EVIL, SHORT } from './texts.js';

// Opens a page from a local file.
async function fromFile(browser, html, work) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'heedful-offline-'));
  try {
    const file = path.join(folder, 'page.html');
    await writeFile(file, html);
    await visit(browser, pathToFileURL(file), work);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

// An explanation in which every token attends to its own position.
function large(length, layers, heads) {
  const tokens = Array.from({ length }, (_, i) => ({ piece: `▁token${i}`, word: i, log_probability: -0.1 }));
  const weights = new Uint16Array(length * length);
  for (let i = 0; i < length; i++) weights[i * length + i] = 65535;
  const head = Buffer.from(weights.buffer).toString('base64');
  const attention = Array.from({ length: layers }, (_, layer) => ({
    layer: `decoder.${layer}.cross`, kind: 'cross', queries: length, keys: length, heads: Array(heads).fill(head),
  }));
  const text = tokens.map(({ piece }) => piece.slice(1)).join(' ');
  return { source: { text, tokens }, outputs: [{ text, score: -1, log_probability: -1, tokens, alignment: [], attention }] };
}

export function files(at) {
  test('every picture can be downloaded as SVG and PNG', async () => {
    for (const view of ['words', 'lines', 'colours', 'matrix', 'grid', 'tree']) {
      await translated(at.browser, at.url, SHORT, async (page) => {
        const svg = (await download(page, 'SVG')).bytes.toString();
        assert.match(svg, /^<svg /);
        assert.match(svg, /<\/svg>\s*$/);
        assert.ok(!svg.includes('NaN') && !svg.includes('undefined'), view);
        const titles = { words: /decoder, mean of all layers, cross attention/, colours: /decoder\.\d\.cross/, grid: /all heads, cross attention/, tree: /Alternatives/ };
        assert.match(svg, titles[view] ?? titles.words, `${view}: the picture says what it shows`);
        // Nothing is clipped: no text starts left of the picture, and no title is wider than it.
        const outside = await page.evaluate((svg) => {
          const holder = document.createElement('div');
          holder.append(new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement);
          document.body.append(holder);
          const { width, height } = holder.firstChild.viewBox.baseVal;
          const texts = [...holder.querySelectorAll('text')].filter((text) => {
            const [box, frame] = [text.getBoundingClientRect(), holder.firstChild.getBoundingClientRect()];
            return box.left < frame.left - 1 || box.right > frame.left + width + 1 || box.bottom > frame.top + height + 1;
          }).map((text) => text.textContent);
          holder.remove();
          return texts;
        }, svg);
        assert.deepEqual(outside, [], view);
        const png = await download(page, 'PNG');
        assert.equal(png.name, `${SHORT}.png`);
        assert.deepEqual([...png.bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
        const [width, height] = [png.bytes.readUInt32BE(16), png.bytes.readUInt32BE(20)];
        assert.ok(width > 100 && height > 20, `${view}: ${width} × ${height}`);
      }, { choice: { view } });
    }
  });

  test('the numbers can be downloaded as JSON', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      const [explanation] = JSON.parse((await download(page, 'JSON')).bytes.toString());
      assert.equal(explanation.source.text, SHORT);
      assert.equal(explanation.outputs[0].text, await page.$eval('#output', (output) => output.textContent));
    });
  });

  test('the downloaded page works from a file, without any network', async () => {
    for (const text of [SHORT, EVIL]) {
      let html = null;
      await translated(at.browser, at.url, text, async (page) => {
        html = (await download(page, 'HTML')).bytes;
      }, { choice: { view: 'lines' } });
      await fromFile(at.browser, html, async (page) => {
        await page.waitForSelector('.lines .end');
        assert.ok(await page.$('#viewer [data-value=lines][aria-selected=true]'), 'it opens with what was on the screen');
        assert.equal(await page.$eval('#pair .source', (source) => source.textContent), text);
        const asked = [];
        page.on('request', (request) => asked.push(request.url()));
        for (const view of ['lines', 'colours', 'matrix', 'grid', 'tree', 'words']) {
          await page.click(`#viewer [data-value=${view}]`);
          assert.ok(await page.$eval('.stage', (stage) => stage.childElementCount) > 0, view);
        }
        assert.equal(await page.evaluate(() => window.hacked), undefined);
        assert.equal(await page.evaluate(() => document.images.length), 0);
        assert.deepEqual(asked, []);
        assert.deepEqual(await complaints(page), []);
      });
    }
  });

  test('scores are shown with the weights, in both forms', async () => {
    const empty = await (await fetch(`${at.url}/offline.html`)).text();
    for (const attention of ['rows', 'packed']) {
      const { results: [{ sentences: [{ explanation }] }] } = await ask(at.url, { text: SHORT, attention, raw_scores: true });
      const html = empty.replace('id="explanations">[]', () => `id="explanations">${JSON.stringify([explanation])}`);
      await fromFile(at.browser, html, async (page) => {
        await page.waitForSelector('.word');
        await page.click('#viewer [data-value=matrix]');
        await page.click('#viewer [data-value=token]');
        const read = async () => {
          await page.focus('.map canvas');
          await page.keyboard.press('ArrowDown');
          return page.$eval('.cell', (cell) => cell.textContent);
        };
        assert.match(await read(), /%$/, 'a mean has no score');
        const layers = explanation.outputs[0].attention.filter(({ kind }) => kind === 'cross');
        if (layers.length > 1) await choose(page, 'Layer', 'decoder.0.cross');
        await choose(page, 'Head', '0');
        assert.match(await read(), /%, score -?\d+\.\d\d$/);
      });
    }
  });

  test('four hundred tokens, six layers and eight heads are drawn', async () => {
    const empty = await (await fetch(`${at.url}/offline.html`)).text();
    const html = empty.replace('id="explanations">[]', () => `id="explanations">${JSON.stringify([large(400, 6, 8)])}`);
    await fromFile(at.browser, html, async (page) => {
      await page.waitForSelector('.word');
      for (const [view, selector, count] of [['lines', '.lines .end', 800], ['grid', '.tile canvas', 48], ['matrix', '.map canvas', 1]]) {
        await page.click(`#viewer [data-value=${view}]`);
        assert.equal((await page.$$(selector)).length, count, view);
      }
      const [width, height] = await page.$eval('.map canvas', (canvas) => [canvas.width, canvas.height]);
      assert.ok(width <= 1280 && height <= 900, `${width} × ${height}`);
    });
  });
}
