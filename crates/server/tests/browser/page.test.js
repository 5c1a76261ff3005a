// Tests of the page in a real browser, with a real server and model.

import { after, before, describe } from 'node:test';
import { launch } from './browser.js';
import { files } from './files.js';
import { heads } from './heads.js';
import { keys } from './keys.js';
import { looks } from './looks.js';
import { runs } from './runs.js';
import { startServer } from './server.js';
import { states } from './states.js';
import { tasks } from './tasks.js';
import { typing } from './typing.js';
import { views } from './views.js';

// Filled before the first test runs.
const at = { url: '', browser: null };
let server = null;

before(async () => {
  server = await startServer();
  at.url = server.url;
  at.browser = await launch();
});

after(async () => {
  await at.browser?.close();
  await server?.stop();
});

describe('typing', () => typing(at));
describe('states', () => states(at));
describe('views', () => views(at));
describe('heads', () => heads(at));
describe('files', () => files(at));
describe('looks', () => looks(at));
describe('training runs', () => runs(at));
describe('tasks', () => tasks(at));
describe('keys', () => keys(at));
