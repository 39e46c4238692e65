// Stacked bars: what a variant's time was spent on.

import { h } from './dom';
import { ms, percent } from './format';
import { PART_VARS, type Run } from './model';

const STRIPES = (v: string): string => `repeating-linear-gradient(135deg, var(${v}) 0 5px, color-mix(in srgb, var(${v}) 70%, transparent) 5px 8px)`;
export const fillOf = (part: number): string => (PART_VARS[part] === '--throttled' ? STRIPES('--throttled') : `var(${PART_VARS[part]})`);

/** Mean µs per part for each variant, of invocations whose parts are in the page. */
function means({ page }: Run): { sums: number[]; n: number }[] {
  const out = page.summary.variants.map(() => ({ sums: page.parts.map(() => 0), n: 0 }));
  page.invocations.segments.forEach((segments, row) => {
    const of = out[page.invocations.variant[row]];
    if (!of || !segments.length) return;
    of.n++;
    for (let at = 0; at < segments.length; at += 2) of.sums[segments[at]] += segments[at + 1];
  });
  return out;
}

export function parts(run: Run): HTMLElement | null {
  const { page } = run;
  const all = means(run);
  const totals = all.map(({ sums, n }) => sums.reduce((a, b) => a + b, 0) / Math.max(n, 1));
  const longest = Math.max(...totals);
  if (!(longest > 0)) return null;
  const bars: HTMLElement[] = [];
  const used = new Set<number>();
  all.forEach(({ sums, n }, v) => {
    const pieces = sums.map((sum, part) => ({ part, us: sum / Math.max(n, 1) })).filter((p) => p.us > 0);
    pieces.forEach((p) => used.add(p.part));
    const words = pieces.map((p) => `${page.parts[p.part]} ${ms(p.us)}`).join(', ');
    const bar = h('div', { class: 'bar', role: 'img', 'aria-label': `${page.summary.variants[v].name}: ${words}`, style: `width: ${(totals[v] / longest) * 100}%` },
      ...pieces.map((p) => h('i', { style: `width: ${(p.us / totals[v]) * 100}%; background: ${fillOf(p.part)}`, title: `${page.parts[p.part]}: ${ms(p.us)} on average, ${percent(p.us / totals[v])}` })));
    bars.push(h('div', {}, page.summary.variants[v].name), h('div', {}, bar), h('div', { class: 'num' }, ms(totals[v])));
  });
  const rows = page.parts.map((name, part) => ({ name, part })).filter(({ part }) => used.has(part));
  const head = h('tr', {}, h('th', { class: 'l', scope: 'col' }, 'part, mean'), ...page.summary.variants.map((v) => h('th', { scope: 'col' }, v.name)));
  const body = rows.map(({ name, part }) => h('tr', {},
    h('td', { class: 'l' }, h('span', { class: 'dot', style: `background: ${fillOf(part)}` }), name),
    ...all.map(({ sums, n }, v) => { const us = sums[part] / Math.max(n, 1); return h('td', {}, us ? `${ms(us)} · ${percent(us / totals[v])}` : '–'); })));
  return h('div', {},
    h('div', { class: 'bars' }, ...bars),
    h('div', { class: 'legend', 'aria-hidden': 'true' }, ...rows.map(({ name, part }) => h('span', {}, h('span', { class: 'dot', style: `background: ${fillOf(part)}` }), name))),
    h('details', { style: 'margin-top: 12px' }, h('summary', {}, 'as a table'), h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Parts as a table' }, h('table', {}, h('thead', {}, head), h('tbody', {}, ...body)))));
}
