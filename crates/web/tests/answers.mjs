// Answers requests with the module, for module.rs: `node answers.mjs ENGINE.js MODULE.wasm.gz < requests`. A request is a
// line of JSON [method, path, body], where {"file": PATH} is the bytes of a file, and {"bytes": N} are bytes that exceed
// the memory. A line of JSON [status, body, milliseconds] answers each.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { gunzipSync } from "node:zlib";

const [script, wasm] = process.argv.slice(2);
// As text, because a script of a page has no package.json that makes it a module.
const { Engine } = await import(`data:text/javascript,${encodeURIComponent(readFileSync(script, "utf8"))}`);
const engine = new Engine(new WebAssembly.Module(gunzipSync(readFileSync(wasm))));
for await (const line of createInterface({ input: process.stdin })) {
  const [method, path, body] = JSON.parse(line);
  const bytes = body?.file ? new Uint8Array(readFileSync(body.file)) : body?.bytes ? tooLong(body.bytes) : body;
  const began = performance.now();
  const answer = engine.request(method, path, bytes ?? undefined);
  process.stdout.write(`${JSON.stringify([answer.status, answer.body, performance.now() - began])}\n`);
}

/** An array that claims to be longer than it is. */
function tooLong(length) {
  return Object.defineProperty(new Uint8Array(1), "length", { value: length });
}
