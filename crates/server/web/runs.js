// Training runs: curves, and sample outputs over the steps. Follows runs while they train.

import { headsAddress, page, pagesAreFetched, reportAddress, runs } from './api.js';
import { AttentionHistory } from './attention-history.js';
import { MAX_RUNS, curves } from './curves.js';
import { save } from './download.js';
import { dropdown, make, segmented } from './elements.js';
import { FollowedRun } from './followed-run.js';
import { sentenceOf } from './retry.js';
import { Samples } from './samples.js';

const POLL_MS = 2000;

export class RunsPage {
  constructor(root) {
    Object.assign(this, { root, names: null, followed: [], timer: null, visit: 0, settings: { smoothing: 0, form: 'linear' } });
    this.head = make('div', { class: 'run-head' });
    this.controls = make('div', { class: 'controls' });
    this.charts = make('section', { class: 'charts', 'aria-label': 'Curves' });
    this.samples = new Samples();
    this.history = new AttentionHistory();
    root.append(this.head, this.controls, this.charts, this.samples.element, this.history.element);
  }

  // The run whose samples and attention are shown; of the others only curves are shown.
  get first() {
    return this.followed[0] ?? null;
  }

  // `wanted` lists runs, separated by commas: the first, and those that it is compared with.
  async open(wanted) {
    const visit = ++this.visit;
    try {
      const names = await runs();
      if (visit !== this.visit) return;
      this.names = names;
      const chosen = (wanted === null || names.includes(wanted) ? [wanted] : wanted.split(',')).filter((name) => names.includes(name));
      this.followed = (chosen.length > 0 ? chosen : names.slice(0, 1)).slice(0, MAX_RUNS).map((name) => new FollowedRun(name));
      this.draw();
      this.drawControls();
      if (this.first) await this.follow(visit);
    } catch (error) {
      if (visit !== this.visit) return;
      this.say(`${sentenceOf(error)} Trying again.`);
      this.timer = setTimeout(() => this.open(wanted), POLL_MS);
    }
  }

  close() {
    this.visit++;
    clearTimeout(this.timer);
  }

  say(sentence) {
    const note = this.head.querySelector('.run-note');
    if (note) note.textContent = sentence;
    else this.head.replaceChildren(make('p', { class: 'hint run-note', role: 'status' }, sentence));
  }

  // Polls for new records until the page is left. The page is dimmed while the server is unreachable.
  async follow(visit) {
    clearTimeout(this.timer);
    // A run that cannot be read does not hide the others.
    const answers = await Promise.allSettled(this.followed.map((run, i) => run.update(i === 0)));
    if (visit !== this.visit) return;
    if (answers.some(({ value }) => value)) this.draw();
    const trouble = answers.find(({ reason }) => reason)?.reason ?? null;
    this.root.dataset.state = trouble ? 'waiting' : 'live';
    this.charts.classList.toggle('stale', trouble !== null);
    this.say(trouble ? `${sentenceOf(trouble)} Trying again.` : this.first.note);
    this.timer = setTimeout(() => this.follow(visit), POLL_MS);
  }

  // A link to a page about the run.
  link(address, text) {
    const open = async (event) => {
      if (!pagesAreFetched()) return;
      event.preventDefault();
      try {
        save(`${this.first.name}-${address.split('/').at(-1)}.html`, await page(address));
      } catch (error) {
        this.say(error.message);
      }
    };
    return make('a', { href: address, on: { click: open } }, text);
  }

  openRuns(names) {
    location.hash = new URLSearchParams({ runs: names.join() });
  }

  drawControls() {
    const { names, followed, settings } = this;
    this.controls.hidden = !this.first;
    if (!this.first) return;
    const slider = make('input', { type: 'range', min: '0', max: '0.98', step: '0.02', value: settings.smoothing, id: 'smoothing', on: { input: () => { settings.smoothing = Number(slider.value); this.drawCurves(); } } });
    const set = (form) => { settings.form = form; this.drawControls(); this.drawCurves(); };
    const chosen = followed.map(({ name }) => name);
    const others = names.filter((name) => name !== chosen[0]);
    const toggle = (name) => this.openRuns(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
    this.controls.replaceChildren(
      make('label', { class: 'slider', for: 'smoothing' }, 'Smoothing', slider),
      segmented('Axis', [{ value: 'linear', text: 'Linear' }, { value: 'log', text: 'Log' }], settings.form, set),
      others.length > 0 ? make('div', { class: 'others', role: 'group', 'aria-label': 'Compare with' }, make('span', { class: 'soft' }, 'Compare with'),
        others.slice(0, 24).map((name) => make('button', { type: 'button', class: `chip${chosen.includes(name) ? ` curve-${chosen.indexOf(name) + 1}` : ''}`, 'aria-pressed': String(chosen.includes(name)), disabled: !chosen.includes(name) && chosen.length >= MAX_RUNS, on: { click: () => toggle(name) } }, name))) : '');
  }

  drawCurves() {
    this.charts.replaceChildren(...curves(this.followed, this.settings));
  }

  draw() {
    if (!this.names) return;
    if (!this.first) {
      this.head.replaceChildren(make('h1', {}, 'Training'), make('p', { class: 'hint' }, 'No runs are served here. `heedful train --dashboard` shows one while it trains.'));
      return;
    }
    const { name, note, plan, records, attention } = this.first;
    this.head.replaceChildren(
      make('h1', {}, name),
      make('p', { class: 'run-note' }, note),
      ...(this.names.length > 1 ? [dropdown('Run', this.names.map((value) => ({ value, text: value })), name, (chosen) => this.openRuns([chosen]))] : []),
      ...(plan?.heads ? [this.link(headsAddress(name), 'What the heads do')] : []),
      this.link(reportAddress(name), 'Report'),
    );
    this.drawCurves();
    this.samples.show(records);
    this.history.show(attention);
  }
}
