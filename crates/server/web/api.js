// The client of the server's API. An error response becomes an Error with the server's message and the
// milliseconds of its Retry-After header.

import { hasKey, withKey } from './key.js';

let refused = () => {};

// `listener(sentence)` is called when the server refuses a request because its key is missing or invalid.
export function onRefused(listener) {
  refused = listener;
}

export function models() {
  return get('v1/models');
}

// The maximum characters of a request.
export async function characterLimit() {
  return (await get('frontend/settings')).charLimit ?? null;
}

// Whether a route accepts a field, according to /openapi.json.
export async function takes(route, field) {
  return field in await fieldsOf(route);
}

let description = null;

// The schemas of a route's request fields, from /openapi.json.
async function fieldsOf(route) {
  // After a failure, the next call fetches it again.
  description ??= get('openapi.json').catch((error) => { description = null; throw error; });
  const { paths, components } = await description;
  const body = paths[route]?.post?.requestBody?.content['application/json']?.schema;
  const schema = components.schemas[body?.$ref?.split('/').at(-1)] ?? body;
  return schema?.properties ?? {};
}

// Clamps the page's preferred numbers to the ranges of this server.
async function bounded(route, request) {
  const fields = await fieldsOf(route).catch(() => ({}));
  const within = (name, value) => (typeof value === 'number' ? Math.min(value, fields[name]?.maximum ?? Infinity) : value);
  return Object.fromEntries(Object.entries(request).map(([name, value]) => [name, within(name, value)]));
}

export function detect(text) {
  return post('detect', { q: text });
}

export function classify(request, signal) {
  return post('v1/classify', request, signal);
}

export function runs() {
  return get('v1/runs');
}

// The records of a run after a step.
export function metrics(run, after) {
  return get(`v1/runs/${encodeURIComponent(run)}/metrics?after=${after}`);
}

// The planned length of a run: { steps, seconds, heads }.
export function plan(run) {
  return get(`v1/runs/${encodeURIComponent(run)}/plan`);
}

export function headsAddress(run) {
  return `v1/runs/${encodeURIComponent(run)}/heads`;
}

// The attention of the sample sentence, after a step.
export function attentionHistory(run, after) {
  return get(`v1/runs/${encodeURIComponent(run)}/attention?after=${after}`);
}

export function reportAddress(run) {
  return `v1/runs/${encodeURIComponent(run)}/report`;
}

// A link cannot send a key: if there is one, pages are fetched and saved as files.
export const pagesAreFetched = hasKey;

export async function page(address) {
  return (await answered(await fetch(address, { headers: withKey() }))).blob();
}

// The offline page without sentences.
export async function emptyPage() {
  return (await answered(await fetch('offline.html'))).text();
}

export async function translate(request, signal) {
  return post('v1/translate', await bounded('/v1/translate', request), signal);
}

// Translates as a stream: `partial({ result, sentence, text })` is called with each partial text.
export function translateStreaming(request, partial, signal) {
  return streaming('v1/translate', request, partial, signal);
}

// Generates as a stream: `partial({ text })` is called with each partial text.
export function generateStreaming(request, partial, signal) {
  return streaming('v1/generate', request, partial, signal);
}

async function streaming(path, request, partial, signal) {
  const response = await answered(await fetch(path, {
    method: 'POST',
    headers: withKey({ 'Content-Type': 'application/json', Accept: 'text/event-stream' }),
    body: JSON.stringify({ ...await bounded(`/${path}`, request), stream: true }),
    signal,
  }));
  for await (const { event, data } of events(response.body)) {
    if (event === 'partial') partial(data);
    if (event === 'error') throw new Error(data.error);
    if (event === 'done') return data;
  }
  throw new Error('The server closed the connection.');
}

// Server-sent events of a body, one after the other.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (waiting + value).replaceAll('\r\n', '\n').split('\n\n');
    waiting = blocks.pop();
    for (const block of blocks) {
      const lines = block.split('\n');
      const field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ''));
      const data = field('data').join('\n');
      if (data) yield { event: field('event')[0] ?? 'message', data: JSON.parse(data) };
    }
  }
}

async function get(path) {
  return (await answered(await fetch(path, { headers: withKey() }))).json();
}

async function post(path, request, signal) {
  const headers = withKey({ 'Content-Type': 'application/json' });
  return (await answered(await fetch(path, { method: 'POST', headers, body: JSON.stringify(request), signal }))).json();
}

async function answered(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  if (response.status === 403 && await isKeyRequired()) refused(hasKey() ? body.error : '');
  const wait = Number.parseFloat(response.headers.get('Retry-After'));
  const error = new Error(body.error ?? `The server responded with status ${response.status}.`);
  throw Object.assign(error, { status: response.status, wait: Number.isFinite(wait) ? 1000 * wait : 0 });
}

async function isKeyRequired() {
  const settings = await fetch('frontend/settings').then((response) => response.json()).catch(() => ({}));
  return settings.keyRequired === true;
}
