// The violations that axe, the accessibility checker, finds on a page.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];

export async function complaints(page) {
  await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
  // Contrast is measured after colour transitions have ended.
  await page.evaluate(() => Promise.allSettled(document.getAnimations().map((animation) => animation.finished)));
  const found = await page.evaluate((rules) => window.axe.run(document, { runOnly: rules }), RULES);
  return found.violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.map(({ html }) => html).join(' ')}`);
}
