// Small models for the pages of other tasks, trained in seconds by the program under test.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startServer } from './server.js';

const SMALL = ['--quiet', '--steps', '30', '--batch-tokens', '512', '--d-model', '32', '--d-ff', '64', '--heads', '2'];

const lines = (count, line) => Array.from({ length: count }, (_, i) => line(i)).join('\n');

// Runs `work(url)` with a server of two translators of opposite directions, a classifier
// and a language model.
export async function withAllTasks(work) {
  if (process.env.HEEDFUL_ALL_TASKS_URL) {
    await work(process.env.HEEDFUL_ALL_TASKS_URL);
    return;
  }
  const folder = await mkdtemp(path.join(os.tmpdir(), 'heedful-tasks-'));
  const at = (name) => path.join(folder, name);
  const train = (...flags) => promisify(execFile)(process.env.HEEDFUL_BINARY, ['train', ...flags, ...SMALL]);
  try {
    await writeFile(at('mood.tsv'), lines(400, (i) => (i % 2 ? 'good\ta wonderful day' : 'bad\ta terrible night')));
    await writeFile(at('text.txt'), lines(400, (i) => ['a red car', 'the blue sea', 'two green trees'][i % 3]));
    await train('--task', 'classify', '--label-text', at('mood.tsv'), '--valid-label-text', at('mood.tsv'), '--encoder-layers', '1', '--out', at('mood'));
    await train('--task', 'lm', '--text', at('text.txt'), '--valid-text', at('text.txt'), '--decoder-layers', '1', '--out', at('writer'));
    const model = process.env.HEEDFUL_MODEL;
    const server = await startServer(['--model', `zh-en=${model}`, '--model', `en-zh=${model}`, '--model', `mood=${at('mood')}`, '--model', `writer=${at('writer')}`], null);
    try {
      await work(server.url);
    } finally {
      await server.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
