// The WebAssembly module as an engine that answers the requests of heedful's HTTP API. It blocks the thread
// that calls it: pages use it through worker.js.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An instance of the module with its opened models. */
export class Engine {
  #module;
  #exports;
  /** The bytes of the opened packages by name, to open them again after a trap. */
  #packages = new Map();

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    this.#module = module;
    this.#start();
  }

  /**
   * Answers a request. `body` is an object, or the bytes of a package for `PUT /v1/models/NAME`.
   * @returns {{status: number, body: object}} as HTTP: 200, or an error with the field `error`
   */
  request(method, path, body) {
    const began = performance.now();
    const target = `${method} ${path}`;
    const bytes = body instanceof Uint8Array ? body : encoder.encode(body === undefined ? "" : JSON.stringify(body));
    const { status, text } = this.#answer(target, bytes);
    const answer = { status, body: JSON.parse(text) };
    if (answer.body?.timings) {
      const elapsed = performance.now() - began;
      answer.body.timings = { queue_ms: 0, compute_ms: elapsed, total_ms: elapsed };
    }
    this.#remember(target, bytes, status);
    return answer;
  }

  /** The response as text. */
  #answer(target, bytes) {
    const head = encoder.encode(`${target}\n`);
    try {
      const start = this.#exports.heedful_request(head.length + bytes.length) >>> 0;
      const request = new Uint8Array(this.#exports.memory.buffer, start, head.length + bytes.length);
      request.set(head);
      request.set(bytes, head.length);
      const status = this.#exports.heedful_answer();
      return { status, text: this.#response() };
    } catch (trap) {
      const text = this.#response() || JSON.stringify({ error: `the computation stopped: ${trap.message}` });
      this.#start();
      return { status: 500, text };
    }
  }

  #response() {
    const start = this.#exports.heedful_response() >>> 0;
    const length = this.#exports.heedful_response_length() >>> 0;
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, start, length));
  }

  #remember(target, bytes, status) {
    const [, method, name] = target.match(/^(PUT|DELETE) \/v1\/models\/(.*)$/) ?? [];
    if (method === "PUT" && status === 200) {
      this.#packages.set(name, bytes.slice());
    } else if (method === "DELETE") {
      this.#packages.delete(name);
    }
  }

  /** A new instance: after a trap the memory of the old one may be inconsistent. */
  #start() {
    this.#exports = new WebAssembly.Instance(this.#module, {}).exports;
    for (const [name, bytes] of this.#packages) {
      if (this.#answer(`PUT /v1/models/${name}`, bytes).status !== 200) {
        this.#packages.delete(name);
      }
    }
  }
}
