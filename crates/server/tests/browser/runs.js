import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints } from './axe.js';
import { PATIENCE, visit } from './browser.js';

export function runs(at) {
  test('a run has its curves and its samples', async () => {
    const [name] = await (await fetch(`${at.url}/v1/runs`)).json();
    const records = await (await fetch(`${at.url}/v1/runs/${encodeURIComponent(name)}/metrics`)).json();
    await visit(at.browser, `${at.url}/#runs=${encodeURIComponent(name)}`, async (page) => {
      await page.waitForSelector('.charts figure');
      assert.equal(await page.$eval('#runs h1', (title) => title.textContent), name);
      assert.ok(!(await page.$eval('#runs', (runs) => runs.innerText)).includes('null'), 'what is not there is not shown');
      assert.deepEqual(await complaints(page), []);
      const labels = await page.$$eval('.chart', (charts) => charts.map((chart) => chart.getAttribute('aria-label')));
      const last = records.filter((record) => 'loss' in record).at(-1).step;
      assert.ok(labels.some((label) => label.startsWith('Loss') && label.includes(`at step ${last}`)), labels.join('\n'));
      const sampled = records.filter(({ samples }) => samples?.length > 0);
      assert.ok(sampled.length > 0, 'the demo samples sentences');
      const outputs = () => page.$$eval('.samples .said', (said) => said.map((output) => output.textContent));
      assert.deepEqual(await outputs(), sampled.at(-1).samples.map(({ output }) => output || '(nothing)'));
      await page.$eval('#sample-step', (slider) => { slider.value = '0'; slider.dispatchEvent(new Event('input')); });
      assert.deepEqual(await outputs(), sampled[0].samples.map(({ output }) => output || '(nothing)'));
    });
  });

  test('new records of a run that goes on are drawn as they come', async () => {
    const records = [{ step: 10, seconds: 1, loss: 4 }, { step: 20, seconds: 2, loss: 3 }, { step: 30, seconds: 3, loss: 2 }];
    const looks = records.map(({ step }) => ({ step, layer: 'the last layer', rows: ['▁an', '<eos>'], columns: ['一', '套'], weights: [[1, 0], [0.25, 0.75]] }));
    await visit(at.browser, `${at.url}/`, async (page) => {
      let known = 1;
      page.on('request', (request) => {
        const { pathname, searchParams } = new URL(request.url());
        const answer = (body) => request.respond({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
        if (pathname === '/v1/runs') answer(['live']);
        else if (pathname === '/v1/runs/live/attention') answer(looks.slice(0, known).filter(({ step }) => step > Number(searchParams.get('after'))));
        else if (pathname === '/v1/runs/live/metrics') answer(records.slice(0, known).filter(({ step }) => step > Number(searchParams.get('after'))));
        else request.continue();
      });
      await page.setRequestInterception(true);
      await page.click('[data-page=runs]');
      for (const step of [10, 20, 30]) {
        await page.waitForFunction((step) => document.querySelector('.chart')?.getAttribute('aria-label').includes(`at step ${step}`), PATIENCE, step);
        known += 1;
      }
      await page.waitForFunction(() => document.querySelectorAll('.strip .tile').length === 3, PATIENCE);
      assert.ok(await page.$('#runs .map canvas'));
      assert.deepEqual(await complaints(page), []);
      assert.equal(await page.evaluate(() => document.querySelector('.run-note').textContent), 'step 30 · 3 s of training');
    });
  });
}
