// The run in one look.

import { h } from './dom';
import { number, usd } from './format';
import type { Run } from './model';

export function header({ page }: Run): HTMLElement {
  const { manifest, summary } = page;
  const n = page.invocations.id.length;
  const factor = manifest.calibration.cpu_factor;
  const chips = [
    new Date(manifest.started_epoch_ms).toISOString().slice(0, 16).replace('T', ' ') + ' UTC',
    `${n} invocations, ${summary.variants.length} variant${summary.variants.length === 1 ? '' : 's'}`,
    `seed ${summary.seed}`,
    summary.repetitions > 1 ? `${summary.repetitions} repetitions pooled` : '',
    summary.time_scale > 1 ? `time ÷ ${summary.time_scale}` : '',
    factor ? `one core here = ${factor.toFixed(2)} Lambda vCPU` : 'CPU speed not calibrated',
    `${manifest.machine.cpus} CPUs, Linux ${manifest.machine.kernel}`,
    manifest.quick ? 'quick run' : '',
  ];
  return h('header', { class: 'top' },
    h('div', { class: 'brand' }, 'danki report'),
    h('h1', {}, manifest.name),
    h('p', { class: 'lead' }, page.description),
    h('div', { class: 'chips' }, ...chips.filter(Boolean).map((c) => h('span', { class: 'chip' }, c))),
  );
}

const tile = (kind: string, big: string, small: string): HTMLElement =>
  h('div', { class: `tile ${kind}` }, h('b', {}, big), h('span', {}, small));

export function verdict({ page }: Run): HTMLElement {
  const { summary } = page;
  const tiles: HTMLElement[] = [];
  if (!summary.complete) tiles.push(tile('bad', 'interrupted', 'what was recorded is shown'));
  const problems = summary.findings.filter((f) => f.level === 'problem');
  tiles.push(tile(problems.length ? 'bad' : 'good', problems.length ? `${problems.length} cause${problems.length === 1 ? '' : 's'}` : 'no cause found',
    problems.length ? 'of lost time, money or answers' : 'nothing that costs time, money or answers'));
  const saving = Math.max(0, ...problems.map((f) => f.remedy?.saves_ms ?? 0));
  if (saving > 0) {
    const best = problems.find((f) => f.remedy?.saves_ms === saving)!;
    const money = best.remedy?.saves_usd_per_million;
    const dollars = money ? `; ${money > 0 ? 'saves' : 'costs'} ${usd(Math.abs(money))} per million` : '';
    tiles.push(tile('note', `−${number(saving)} ms`, `largest predicted saving per invocation${best.variant ? `, ${best.variant}` : ''}${dollars}`));
  }
  const timed = summary.variants.filter((v) => v.duration_ms.p50);
  if (timed.length > 1) {
    const sorted = [...timed].sort((a, b) => a.duration_ms.p50! - b.duration_ms.p50!);
    const [fast, slow] = [sorted[0], sorted[sorted.length - 1]];
    tiles.push(tile('', `${number(slow.duration_ms.p50! / fast.duration_ms.p50!)} ×`, `${slow.name} against ${fast.name}, median Duration`));
  } else if (timed.length === 1) {
    tiles.push(tile('', `${number(timed[0].duration_ms.p50)} ms`, 'median Duration'));
  }
  const errors = summary.variants.reduce((sum, v) => sum + v.errors, 0);
  if (errors) tiles.push(tile('bad', `${errors} failed`, 'their Durations are in all figures'));
  if (summary.expect.length) {
    const within = summary.expect.filter((e) => e.within).length;
    tiles.push(tile(within === summary.expect.length ? 'good' : 'bad', `${within} of ${summary.expect.length}`, 'figures are where the experiment says they must be'));
  }
  return h('div', { class: 'verdict', role: 'group', 'aria-label': 'The run in one look' }, ...tiles);
}
