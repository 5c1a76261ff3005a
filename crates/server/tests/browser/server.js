// The server under test: `heedful serve` with a real model. HEEDFUL_URL selects a server
// that is already running.

import { spawn } from 'node:child_process';
import readline from 'node:readline';

export async function startServer(flags = [], model = process.env.HEEDFUL_MODEL) {
  if (process.env.HEEDFUL_URL && flags.length === 0) return { url: process.env.HEEDFUL_URL, stop: async () => {} };
  const { HEEDFUL_BINARY: binary, HEEDFUL_MODEL } = process.env;
  if (!binary || !HEEDFUL_MODEL) throw new Error('HEEDFUL_BINARY and HEEDFUL_MODEL name the program and the folder of a model; `cargo xtask test` sets both');
  const child = spawn(binary, ['serve', ...(model ? [model] : []), '--port', '0', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr.pipe(process.stderr);
  const ended = new Promise((resolve) => { child.once('exit', resolve); });
  const url = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`heedful serve ended with ${code} before it listened`)));
    // The first URL that it prints is its own.
    for (const input of [child.stdout, child.stderr]) {
      readline.createInterface({ input }).on('line', (line) => {
        const match = line.match(/http:\/\/[\w.]+:\d+/);
        if (match) resolve(match[0]);
      });
    }
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  return { url, stop };
}

export async function ask(url, request) {
  const response = await fetch(`${url}/v1/translate`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}
