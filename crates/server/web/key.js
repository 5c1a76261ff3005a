// The API key of a server that needs one. It is stored for this tab only, and sent as a
// header, never in a URL.

const NAME = 'heedful-key';
// A browser may refuse storage: then the key is kept until the page is closed.
let known = '';
try {
  known = sessionStorage.getItem(NAME) ?? '';
} catch {
  // As above.
}

export function setKey(key) {
  known = key;
  try {
    if (key) sessionStorage.setItem(NAME, key);
    else sessionStorage.removeItem(NAME);
  } catch {
    // As above.
  }
}

export const hasKey = () => known !== '';

// Headers with the key, if there is one.
export function withKey(headers = {}) {
  return known ? { ...headers, Authorization: `Bearer ${known}` } : headers;
}

// The field for the key. `changed()` is called when the key changed.
export class KeyField {
  constructor(changed) {
    this.form = document.getElementById('key');
    this.field = document.getElementById('key-field');
    this.error = document.getElementById('key-error');
    this.opener = document.getElementById('key-open');
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      setKey(this.field.value.trim());
      this.close();
      changed();
    });
    document.getElementById('key-forget').addEventListener('click', () => {
      setKey('');
      this.field.value = '';
      changed();
    });
    this.opener.addEventListener('click', () => (this.form.hidden ? this.open('') : this.close()));
  }

  get isOpen() {
    return !this.form.hidden;
  }

  // Asks for a key, and shows why the last one was refused.
  open(why) {
    this.opener.hidden = false;
    this.opener.setAttribute('aria-expanded', 'true');
    this.form.hidden = false;
    this.error.textContent = why;
    document.getElementById('key-forget').hidden = !hasKey();
    this.field.focus();
  }

  close() {
    this.form.hidden = true;
    this.opener.setAttribute('aria-expanded', 'false');
  }
}
