// The records of a run, and its remaining time.

import { attentionHistory, metrics, plan } from './api.js';

export class FollowedRun {
  constructor(name) {
    Object.assign(this, { name, records: [], attention: [], plan: null });
  }

  // Fetches new records and returns whether there were any. Attention is fetched only if it is shown.
  async update(withAttention) {
    const after = (records) => records.at(-1)?.step ?? 0;
    const [records, attention] = await Promise.all([
      metrics(this.name, after(this.records)),
      withAttention ? attentionHistory(this.name, after(this.attention)) : [],
      // Fetched until the run has ended.
      this.plan?.ending ? null : plan(this.name).then((found) => { this.plan = found; }, () => {}),
    ]);
    // A resumed run continues after its end.
    if (this.plan?.ending && this.records.length > 0 && records.length > 0) this.plan = null;
    this.records.push(...records);
    this.attention.push(...attention);
    return records.length + attention.length > 0;
  }

  // “step 300 of 1,600 (19 %) · 41 s of training · about 3 min left”; for an ended run, the reason
  get note() {
    const last = this.records.at(-1);
    if (!last) return 'no records yet';
    const { steps = null, ending = null } = this.plan ?? {};
    const done = steps ? ` of ${steps.toLocaleString('en')} (${Math.min(100, Math.floor((100 * last.step) / steps))} %)` : '';
    const left = this.secondsLeft;
    const rest = ending ?? (left === null ? null : left > 0 ? `about ${duration(left)} left` : 'done');
    return `step ${last.step.toLocaleString('en')}${done} · ${duration(last.seconds)} of training${rest === null ? '' : ` · ${rest}`}`;
  }

  // By the pace of the last records: a run starts slowly, and validations interrupt it.
  get secondsLeft() {
    const [last, earlier] = [this.records.at(-1), this.records.at(-Math.min(this.records.length, 12))];
    const { steps = null, seconds = null } = this.plan ?? {};
    if (!last || (!steps && !seconds)) return null;
    const pace = last.step > earlier.step ? (last.seconds - earlier.seconds) / (last.step - earlier.step) : last.seconds / Math.max(1, last.step);
    const limits = [steps ? (steps - last.step) * pace : Infinity, seconds ? seconds - last.seconds : Infinity];
    return Math.max(0, Math.min(...limits));
  }
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
