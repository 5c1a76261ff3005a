import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints } from './axe.js';
import { translated } from './browser.js';
import { LONG, SHORT } from './texts.js';

const VIEWS = ['words', 'lines', 'colours', 'matrix', 'grid', 'tree'];
const PHONE = { width: 360, height: 740, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

const brightness = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, value) => sum + Number(value), 0));

export function looks(at) {
  test('nothing is wider than a phone', async () => {
    for (const text of [SHORT, LONG]) {
      for (const view of VIEWS) {
        await translated(at.browser, at.url, text, async (page) => {
          const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
          assert.equal(screen, 360);
          assert.ok(content <= screen, `${view}: ${content} pixels`);
        }, { choice: { view }, viewport: PHONE });
      }
    }
  });

  test('a tap on a word does what a mouse does', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      await page.tap('.word[data-side=key][data-index="2"]');
      assert.equal(await page.$eval('.word.chosen', (word) => `${word.dataset.side} ${word.dataset.index}`), 'key 2');
    }, { viewport: PHONE });
  });

  test('the dark theme is dark, by the system or by the switch', async () => {
    await translated(at.browser, at.url, SHORT, async (page) => {
      assert.ok(await brightness(page) < 150);
    }, { scheme: 'dark' });
    await translated(at.browser, at.url, SHORT, async (page) => {
      // The mean of the painted pixels, weighted by opacity.
      const painted = () => page.$eval('.map canvas', (canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let [sum, weight] = [0, 0];
        for (let i = 0; i < data.length; i += 4) {
          sum += (data[i] + data[i + 1] + data[i + 2]) * data[i + 3];
          weight += data[i + 3];
        }
        return sum / weight;
      });
      assert.ok(await brightness(page) > 600);
      const light = await painted();
      // System theme, light, dark.
      await page.click('.theme');
      await page.click('.theme');
      assert.ok(await brightness(page) < 150);
      assert.ok(await painted() < light / 2, 'the map is painted again in the colours of the dark');
      await page.reload();
      assert.ok(await brightness(page) < 150, 'the choice is remembered');
    }, { choice: { view: 'matrix' } });
  });

  test('axe finds no violations', async () => {
    for (const scheme of ['light', 'dark']) {
      for (const view of VIEWS) {
        await translated(at.browser, at.url, SHORT, async (page) => {
          if (view === 'matrix') await page.click('.table summary');
          assert.deepEqual(await complaints(page), [], `${view}, ${scheme}`);
        }, { choice: { view }, scheme });
      }
    }
  });
}
