// Histogram and ECDF of Durations, one line per variant, on one scale.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { css, h, listen } from './dom';
import { filter, type Test } from './filter';
import { number } from './format';
import { variantVar, type Run } from './model';

const BINS = 60;
/** Share of the slowest that the control leaves out, as field report S1 showed its histograms. */
const SLOWEST = 0.05;

interface Set { name: string; color: string; sorted: number[] }

function sets({ page }: Run, hidden: globalThis.Set<number>, trim: boolean, test: Test): Set[] {
  const values: number[][] = page.summary.variants.map(() => []);
  page.invocations.duration.forEach((us, row) => { if (test(row)) values[page.invocations.variant[row]]?.push(us / 1000); });
  return values.flatMap((v, n) => {
    if (hidden.has(n) || !v.length) return [];
    const sorted = v.sort((a, b) => a - b);
    const keep = trim ? Math.max(1, Math.floor(sorted.length * (1 - SLOWEST))) : sorted.length;
    return [{ name: page.summary.variants[n].name, color: css(variantVar(n)), sorted: sorted.slice(0, keep) }];
  });
}

const axis = (label: string): uPlot.Axis => ({ stroke: css('--soft'), grid: { stroke: css('--line'), width: 1 }, ticks: { stroke: css('--line'), width: 1 }, label, labelSize: 22, size: 46, font: '12px system-ui', labelFont: '12px system-ui' });

function options(width: number, series: uPlot.Series[], log: boolean, y: string, percentages: boolean): uPlot.Options {
  const x = axis('Duration, ms');
  x.values = (_u, splits) => splits.map((v) => (v === null ? '' : number(v)));
  const up = axis(y);
  if (percentages) up.values = (_u, splits) => splits.map((v) => `${Math.round(v * 100)} %`);
  return {
    width, height: 260, legend: { show: false }, cursor: { drag: { x: true, y: false } },
    scales: { x: { time: false, distr: log ? 3 : 1 }, y: { range: (_u, _min, max) => [0, percentages ? 1 : Math.max(max * 1.05, 1)] } },
    axes: [x, up], series,
  };
}

function histogram(all: Set[], log: boolean): uPlot.AlignedData {
  const low = Math.max(Math.min(...all.map((s) => s.sorted[0])), log ? 1e-3 : 0);
  const high = Math.max(...all.map((s) => s.sorted[s.sorted.length - 1]), low * 1.001 + 1e-6);
  const edge = (n: number): number => (log ? low * (high / low) ** (n / BINS) : low + ((high - low) * n) / BINS);
  const position = (v: number): number => (log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low));
  const x = Array.from({ length: BINS + 1 }, (_, n) => edge(n));
  const counts = all.map((s) => {
    const bins: number[] = new Array(BINS + 1).fill(0);
    for (const v of s.sorted) bins[Math.min(BINS - 1, Math.max(0, Math.floor(position(v) * BINS)))]++;
    return bins;
  });
  return [x, ...counts];
}

function ecdf(all: Set[]): uPlot.AlignedData {
  const tables = all.map((s) => [s.sorted, s.sorted.map((_, n) => (n + 1) / s.sorted.length)] as uPlot.AlignedData);
  return uPlot.join(tables);
}

export function distributions(run: Run): HTMLElement | null {
  const { page } = run;
  if (!page.invocations.duration.length) return null;
  const hidden = new Set<number>();
  const state = { trim: false, log: false, test: (() => true) as Test };
  const left = h('div', { role: 'img', 'aria-label': 'Histogram' });
  const right = h('div', { role: 'img', 'aria-label': 'Share of invocations at or below a Duration' });
  let plots: uPlot[] = [];

  const draw = (): void => {
    plots.forEach((p) => p.destroy());
    plots = [];
    const all = sets(run, hidden, state.trim, state.test);
    if (!all.length) {
      [left, right].forEach((chart) => chart.setAttribute('aria-label', 'no invocation'));
      return;
    }
    const width = Math.max(280, left.clientWidth || 520);
    const words = all.map((s) => `${s.name}: ${s.sorted.length} values, ${number(s.sorted[0])} to ${number(s.sorted[s.sorted.length - 1])} ms, median ${number(s.sorted[Math.floor((s.sorted.length - 1) / 2)])} ms`).join('; ');
    left.setAttribute('aria-label', `Histogram. ${words}`);
    right.setAttribute('aria-label', `Share of invocations at or below a Duration. ${words}`);
    const stepped = uPlot.paths.stepped!({ align: 1 });
    const line = (s: Set, fill: boolean): uPlot.Series => ({ label: s.name, stroke: s.color, width: 2, fill: fill ? `${s.color}33` : undefined, paths: stepped, points: { show: false }, spanGaps: true });
    plots.push(new uPlot(options(width, [{}, ...all.map((s) => line(s, true))], state.log, 'invocations', false), histogram(all, state.log), left));
    plots.push(new uPlot(options(width, [{}, ...all.map((s) => line(s, false))], state.log, 'at or below', true), ecdf(all), right));
  };

  const check = (label: Node | string, checked: boolean, change: (on: boolean) => void): HTMLElement => {
    const box = h('input', { type: 'checkbox', checked, change: () => { change(box.checked); draw(); } });
    return h('label', {}, box, label);
  };
  const variants = page.summary.variants.map((v, n) =>
    check(h('span', {}, h('span', { class: 'dot', style: `background: var(${variantVar(n)})` }), v.name), true, (on) => { if (on) hidden.delete(n); else hidden.add(n); }));
  const controls = h('div', { class: 'controls', role: 'group', 'aria-label': 'What the charts show' }, ...variants,
    check('without the slowest 5 %', false, (on) => (state.trim = on)),
    check('logarithmic', false, (on) => (state.log = on)));
  const said = h('span', { class: 'faint', id: 'filter-said', 'aria-live': 'polite' });
  const expression = h('input', { type: 'search', size: 34, placeholder: 'responsetime <= 0.1', 'aria-label': "Filter expression, as X-Ray's", 'aria-describedby': 'filter-said', change: () => {
    const test = filter(run, expression.value);
    const bad = typeof test === 'string';
    expression.setAttribute('aria-invalid', String(bad));
    said.textContent = bad ? test : expression.value.trim() ? `${[...page.invocations.id.keys()].filter(test).length} of ${page.invocations.id.length} invocations` : '';
    if (!bad) { state.test = test; draw(); }
  } });
  controls.append(h('span', {}, expression, ' ', said));
  // Drawn when it is on the page and seen: the first paint does not wait for charts.
  const element = h('div', {}, controls, h('div', { class: 'charts' },
    h('div', { class: 'chart' }, h('h3', {}, 'Histogram'), left), h('div', { class: 'chart' }, h('h3', {}, 'Share at or below (ECDF)'), right)));
  new IntersectionObserver((seen, observer) => { if (seen.some((e) => e.isIntersecting)) { observer.disconnect(); draw(); } }, { rootMargin: '300px' }).observe(element);
  listen(element, matchMedia('(prefers-color-scheme: dark)'), 'change', draw);
  listen(element, window, 'resize', () => void (plots.length && draw()));
  listen(element, window, 'beforeprint', () => void (!plots.length && draw()));
  return element;
}
