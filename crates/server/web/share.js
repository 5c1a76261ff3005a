// The page's state in the fragment of its URL, which never reaches a server's log.

import { fromParameters, toParameters } from './choice.js';

// Some programs truncate URLs longer than this.
const LONGEST = 8000;
const HEAD = /^(?:encoder\.\d{1,3}\.self|decoder\.\d{1,3}\.(?:self|cross))\.\d{1,3}$/;

const PAGES = ['translate', 'classify', 'write', 'runs'];

// The state in the URL. `lost` is set if the text was too long for it.
export function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const page = parameters.has('runs') ? 'runs' : parameters.get('page');
  const state = (suffix) => ({
    text: parameters.get(`text${suffix}`) ?? '',
    model: parameters.get(`model${suffix}`),
    begins: parameters.getAll(`begins${suffix}`).flatMap((given) => {
      const [, sentence, prefix] = given.match(/^([1-9]\d{0,3}):(.+)$/su) ?? [];
      return sentence ? [[Number(sentence) - 1, prefix]] : [];
    }),
    without: (parameters.get(`without${suffix}`) ?? '').split(',').filter((name) => HEAD.test(name)),
  });
  return {
    page: PAGES.includes(page) ? page : 'translate',
    run: parameters.get('runs') || null,
    lost: parameters.has('lost'),
    ...state(''),
    second: parameters.has('text2') || parameters.has('model2') ? state('2') : null,
    choice: fromParameters(parameters),
    settings: Object.fromEntries(['temperature', 'tokens', 'seed'].filter((name) => parameters.has(name)).map((name) => [name, parameters.get(name)])),
  };
}

// `desks`: one or two of { text, model, begins, without }. Text that makes the URL too long is
// omitted and marked as lost.
export function writeAddress({ page = 'translate', desks, choice = null, settings = {} }) {
  const written = (withText) => {
    const parameters = new URLSearchParams();
    if (page !== 'translate') parameters.set('page', page);
    desks.forEach(({ text, model, begins = [], without = [] }, i) => {
      const suffix = i === 0 ? '' : '2';
      if (withText && (text || i > 0)) parameters.set(`text${suffix}`, text);
      if (model) parameters.set(`model${suffix}`, model);
      for (const [sentence, prefix] of withText ? begins : []) parameters.append(`begins${suffix}`, `${sentence + 1}:${prefix}`);
      if (without.length > 0) parameters.set(`without${suffix}`, without.join());
    });
    if (!withText) parameters.set('lost', 'text');
    for (const [name, value] of [...Object.entries(settings), ...(choice ? toParameters(choice) : [])]) parameters.set(name, value);
    return String(parameters);
  };
  const whole = written(true);
  history.replaceState(null, '', `#${whole.length <= LONGEST ? whole : written(false)}`);
}

export async function copyAddress() {
  if (readAddress().lost) return 'The text is too long for a link: download it as HTML instead.';
  return (await isCopied(location.href)) ? 'The link is copied.' : 'The browser did not allow copying the link: take it from the address bar.';
}

// The clipboard is available on secure or local connections only, and may need permission.
export async function isCopied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
