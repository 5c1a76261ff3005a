import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints } from './axe.js';
import { WAIT, visit } from './browser.js';

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
      const outputs = () => page.$$eval('.samples .sample-output', (elements) => elements.map((output) => output.textContent));
      assert.deepEqual(await outputs(), sampled.at(-1).samples.map(({ output }) => output || '(nothing)'));
      await page.$eval('#sample-step', (slider) => { slider.value = '0'; slider.dispatchEvent(new Event('input')); });
      assert.deepEqual(await outputs(), sampled[0].samples.map(({ output }) => output || '(nothing)'));
    });
  });

  test('curves show their values under the pointer, can be smoothed, have a log axis, and show several runs', async () => {
    const run = (factor) => Array.from({ length: 30 }, (_, i) => ({ step: 10 * (i + 1), seconds: i + 1, loss: factor * (i % 2 ? 2 : 1), valid_loss: factor }));
    const logs = { a: run(1), b: run(100) };
    await visit(at.browser, `${at.url}/`, async (page) => {
      page.on('request', (request) => {
        const [, , , name, what] = new URL(request.url()).pathname.split('/');
        const answer = (body) => request.respond({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
        if (request.url().endsWith('/v1/runs')) answer(['a', 'b']);
        else if (what === 'plan') answer({ steps: 300, seconds: null, heads: false });
        else if (what === 'attention') answer([]);
        else if (what === 'metrics') answer(logs[name].filter(({ step }) => step > Number(new URL(request.url()).searchParams.get('after'))));
        else request.continue();
      });
      await page.setRequestInterception(true);
      await page.click('[data-page=runs]');
      await page.waitForSelector('.charts figure', WAIT);
      assert.match(await page.$eval('.run-note', (note) => note.textContent), /^step 300 of 300 \(100 %\) .* done$/);
      const middle = await page.$eval('.chart', (chart) => { const { left, top, width, height } = chart.getBoundingClientRect(); return [left + width / 2, top + height / 2]; });
      await page.mouse.move(...middle);
      const tooltip = await page.$eval('.tooltip:not([hidden])', (tooltip) => tooltip.innerText);
      const [, step] = tooltip.match(/step (\d+)/);
      const record = logs.a.find((record) => record.step === Number(step));
      assert.ok(tooltip.includes(`training ${record.loss}`) && tooltip.includes(`validation ${record.valid_loss}`), tooltip);
      const ends = () => page.$$eval('.charts figure:first-child .curve:not(.raw)', (curves) => curves.map((curve) => curve.getAttribute('d')));
      const before = await ends();
      await page.$eval('#smoothing', (slider) => { slider.value = '0.9'; slider.dispatchEvent(new Event('input')); });
      assert.notDeepEqual(await ends(), before);
      assert.ok(await page.$('.charts figure:first-child .raw'), 'what was measured stays visible');
      await page.click('.others .chip');
      await page.waitForFunction(() => document.querySelectorAll('.charts figure:first-child .curve:not(.raw)').length === 4, WAIT);
      assert.ok(page.url().includes('runs=a%2Cb'));
      const ticks = () => page.$$eval('.charts figure:first-child text[text-anchor=end]', (texts) => texts.map((text) => Number(text.textContent)));
      await page.click('[data-value=log]');
      const log = await ticks();
      assert.ok(log.every((tick) => tick > 0) && log[1] / log[0] === 10, log.join());
      assert.deepEqual(await complaints(page), []);
    });
  });

  test('new records of a live run are drawn as they arrive', async () => {
    const records = [{ step: 10, seconds: 1, loss: 4 }, { step: 20, seconds: 2, loss: 3 }, { step: 30, seconds: 3, loss: 2 }];
    const looks = records.map(({ step }) => ({ step, layer: 'decoder.1.cross', rows: ['▁an', '<eos>'], columns: ['一', '套'], weights: [[1, 0], [0.25, 0.75]] }));
    await visit(at.browser, `${at.url}/`, async (page) => {
      let known = 1;
      let ending = null;
      page.on('request', (request) => {
        const { pathname, searchParams } = new URL(request.url());
        const answer = (body) => request.respond({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
        if (pathname === '/v1/runs') answer(['live']);
        else if (pathname === '/v1/runs/live/plan') answer({ steps: 60, seconds: null, heads: true, ending });
        else if (pathname === '/v1/runs/live/attention') answer(looks.slice(0, known).filter(({ step }) => step > Number(searchParams.get('after'))));
        else if (pathname === '/v1/runs/live/metrics') answer(records.slice(0, known).filter(({ step }) => step > Number(searchParams.get('after'))));
        else request.continue();
      });
      await page.setRequestInterception(true);
      await page.click('[data-page=runs]');
      for (const step of [10, 20, 30]) {
        await page.waitForFunction((step) => document.querySelector('.chart')?.getAttribute('aria-label').includes(`at step ${step}`), WAIT, step);
        known += 1;
      }
      await page.waitForFunction(() => document.querySelectorAll('.strip .tile').length === 3, WAIT);
      assert.ok(await page.$('#runs .map canvas'));
      assert.deepEqual(await complaints(page), []);
      assert.equal(await page.evaluate(() => document.querySelector('.run-note').textContent), 'step 30 of 60 (50 %) · 3 s of training · about 3 s left');
      assert.ok(await page.$('.run-head a[href$="/live/heads"]'), 'what its heads do over a corpus');
      ending = 'the time limit is reached';
      await page.waitForFunction(() => document.querySelector('.run-note').textContent === 'step 30 of 60 (50 %) · 3 s of training · the time limit is reached', WAIT);
    });
  });
}
