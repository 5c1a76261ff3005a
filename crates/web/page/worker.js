// A module worker around engine.js. Each message is a request of heedful's HTTP API with an id, and is answered
// by one message with the same id, in order:
//
//   {id, method: "POST", path: "/v1/translate", body: {text: "…", alternatives: 3}}  →  {id, status: 200, body: {…}}
//   {id, method: "PUT", path: "/v1/models/NAME", body: ArrayBuffer of a package}     →  {id, status: 200, body: {…}}
//
// To cancel a request, terminate the worker and start another.
import { Engine } from "./engine.js";

/** The module is compressed: not every host compresses what it sends. */
async function load() {
  const response = await fetch(new URL("heedful.wasm.gz", import.meta.url));
  if (!response.ok) {
    throw new Error(`${response.url}: status ${response.status}`);
  }
  const bytes = response.body.pipeThrough(new DecompressionStream("gzip"));
  const headers = { "Content-Type": "application/wasm" };
  return new Engine(await WebAssembly.compileStreaming(new Response(bytes, { headers })));
}

const engine = load();

self.onmessage = async ({ data: { id, method, path, body } }) => {
  let answer;
  try {
    const bytes = body instanceof ArrayBuffer ? new Uint8Array(body) : body;
    answer = (await engine).request(method, path, bytes);
  } catch (error) {
    answer = { status: 500, body: { error: `the module cannot be loaded: ${error.message}` } };
  }
  self.postMessage({ id, ...answer });
};
