// A headless Chromium and its pages. A page that logs an error, breaks its security policy or
// throws fails its test.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import puppeteer from 'puppeteer-core';

// Much longer than a loaded machine needs: a wait ends when its condition holds, so tests
// do not depend on speed.
export const WAIT = { timeout: 180_000, polling: 50 };

export async function launch() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM || 'chromium',
    headless: true,
    // Tests may run as root, where Chromium's sandbox refuses to start.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    timeout: WAIT.timeout,
    protocolTimeout: 2 * WAIT.timeout,
  });
}

const DESKTOP = { width: 1280, height: 900, deviceScaleFactor: 1 };

// Runs `work(page)` in a new page at a URL.
export async function visit(browser, address, work, { viewport = DESKTOP, scheme = 'light', expected = [] } = {}) {
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    const complaints = [];
    page.on('console', (message) => {
      if (message.type() === 'error' && !expected.some((words) => message.text().includes(words))) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.setDefaultTimeout(WAIT.timeout);
    await page.setViewport(viewport);
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
    await page.goto(address, { timeout: WAIT.timeout });
    await work(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

// Opens the page with a text in its URL and waits for the translation.
export async function translated(browser, url, text, work, { choice = {}, ...options } = {}) {
  const hash = new URLSearchParams({ text, ...choice });
  await visit(browser, `${url}/#${hash}`, async (page) => {
    await shown(page);
    await work(page);
  }, options);
}

// Waits until the page shows a response and has no open requests.
export async function shown(page) {
  await page.waitForFunction(() => document.documentElement.dataset.ready
    && document.querySelector('#output [data-sentence]')
    && !document.querySelector('#output[aria-busy]')
    && document.querySelector('#viewer .stage')?.childElementCount > 0, WAIT);
}

export async function choose(page, label, value) {
  await page.evaluate((label, value) => {
    const named = [...document.querySelectorAll('#viewer .dropdown')].find((element) => element.firstElementChild.textContent === label);
    const select = named.querySelector('select');
    select.value = value;
    select.dispatchEvent(new Event('change', { bubbles: true }));
  }, label, value);
}

// Clicks an entry of the download menu and returns the file.
export async function download(page, entry) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'heedful-download-'));
  try {
    const session = await page.createCDPSession();
    await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder, eventsEnabled: true, browserContextId: page.browserContext().id });
    const finished = new Promise((resolve, reject) => {
      session.on('Browser.downloadProgress', ({ state }) => {
        if (state === 'completed') resolve();
        if (state === 'canceled') reject(new Error(`the download of ${entry} was cancelled`));
      });
    });
    await page.click('#viewer .menu summary');
    await page.click(`#viewer [data-file=${entry}]`);
    await finished;
    const [name] = await readdir(folder);
    return { name, bytes: await readFile(path.join(folder, name)) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
