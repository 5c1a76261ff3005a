// Retries requests that failed because the server is unreachable or overloaded, with exponential backoff.

const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
const TEMPORARY = [429, 502, 503, 504];

// fetch() throws a TypeError if the server is unreachable.
export function isTemporary(error) {
  return error instanceof TypeError || TEMPORARY.includes(error.status);
}

export function sentenceOf(error) {
  return error instanceof TypeError ? 'The server cannot be reached.' : error.message;
}

export class Retry {
  // `again()` retries; `say(sentence)` is called every second with the status.
  constructor(again, say) {
    Object.assign(this, { again, say, wait: FIRST_MS, timer: null });
    addEventListener('online', () => this.timer && this.now());
  }

  // Shows the error, and schedules another attempt if it is temporary.
  failed(error) {
    this.stop();
    const sentence = sentenceOf(error);
    if (!isTemporary(error)) {
      this.say(sentence);
      return;
    }
    // Not before the time of Retry-After.
    const due = Date.now() + Math.max(this.wait, error.wait ?? 0);
    this.wait = Math.min(LONGEST_MS, 2 * this.wait);
    const tick = () => {
      const left = Math.ceil((due - Date.now()) / 1000);
      if (left <= 0) {
        this.now();
        return;
      }
      this.say(`${sentence} Trying again in ${left} s.`);
      this.timer = setTimeout(tick, Math.min(1000, Math.max(50, due - Date.now())));
    };
    tick();
  }

  now() {
    this.stop();
    this.again();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  // After a response, the backoff starts again.
  succeeded() {
    this.stop();
    this.wait = FIRST_MS;
  }
}
