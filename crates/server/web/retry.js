// What failed for want of a server, or of room on it, is asked again: soon at first, then less and less often.

const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
const TEMPORARY = [429, 502, 503, 504];

// A request that never reached the server is a TypeError.
export function isTemporary(error) {
  return error instanceof TypeError || TEMPORARY.includes(error.status);
}

export function sentenceOf(error) {
  return error instanceof TypeError ? 'The server cannot be reached.' : error.message;
}

export class Retry {
  // `again()` asks once more; `say(sentence)` is told what is awaited, every second.
  constructor(again, say) {
    Object.assign(this, { again, say, wait: FIRST_MS, timer: null });
    addEventListener('online', () => this.timer && this.now());
  }

  // Says what went wrong, and waits for another attempt if one may help.
  failed(error) {
    this.stop();
    const sentence = sentenceOf(error);
    if (!isTemporary(error)) {
      this.say(sentence);
      return;
    }
    // No sooner than the server asks for.
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

  // After an answer the next failure is a new one.
  succeeded() {
    this.stop();
    this.wait = FIRST_MS;
  }
}
