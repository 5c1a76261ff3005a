import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { download, translated, visit } from './browser.js';
import { EVIL, SHORT } from './texts.js';

export function files(at) {
  test('every picture can be had as SVG and PNG', async () => {
    for (const view of ['words', 'lines', 'matrix', 'grid', 'tree']) {
      await translated(at.browser, at.url, SHORT, async (page) => {
        const svg = (await download(at.browser, page, 'SVG')).bytes.toString();
        assert.match(svg, /^<svg /);
        assert.match(svg, /<\/svg>\s*$/);
        assert.ok(!svg.includes('NaN') && !svg.includes('undefined'), view);
        const png = await download(at.browser, page, 'PNG');
        assert.equal(png.name, `${SHORT}.png`);
        assert.deepEqual([...png.bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
        const [width, height] = [png.bytes.readUInt32BE(16), png.bytes.readUInt32BE(20)];
        assert.ok(width > 100 && height > 20, `${view}: ${width} × ${height}`);
      }, { choice: { view } });
    }
  });

  test('the numbers can be had as JSON', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      const [explanation] = JSON.parse((await download(at.browser, page, 'JSON')).bytes.toString());
      assert.equal(explanation.source.text, SHORT);
      assert.equal(explanation.outputs[0].text, await page.$eval('#output', (output) => output.textContent));
    });
  });

  test('the downloaded page works from a file, without any network', async () => {
    for (const text of [SHORT, EVIL]) {
      let html = null;
      await translated(at.browser, at.url, text, async (page) => {
        html = (await download(at.browser, page, 'HTML')).bytes;
      });
      const folder = await mkdtemp(path.join(os.tmpdir(), 'heedful-offline-'));
      try {
        await writeFile(path.join(folder, 'page.html'), html);
        const address = pathToFileURL(path.join(folder, 'page.html'));
        await visit(at.browser, address, async (page) => {
          await page.waitForSelector('.word');
          assert.equal(await page.$eval('#pair .source', (source) => source.textContent), text);
          const asked = [];
          page.on('request', (request) => asked.push(request.url()));
          for (const view of ['lines', 'matrix', 'grid', 'tree', 'words']) {
            await page.click(`#viewer [data-value=${view}]`);
            assert.ok(await page.$eval('.stage', (stage) => stage.childElementCount) > 0, view);
          }
          const said = await page.evaluate(() => ({ hacked: window.hacked, images: document.images.length }));
          assert.deepEqual(said, { hacked: undefined, images: 0 });
          assert.deepEqual(asked, []);
        });
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    }
  });
}
