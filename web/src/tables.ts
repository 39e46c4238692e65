// Numbers per variant.

import { h } from './dom';
import { number, percent, usd } from './format';
import { variantVar, type Run } from './model';

interface Column { title: string; left?: boolean; wrap?: boolean }

function table(caption: string, columns: Column[], rows: (Node | string)[][]): HTMLElement {
  const side = (n: number): string => [columns[n].left ? 'l' : '', columns[n].wrap ? 'wrap' : ''].join(' ').trim();
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {},
      h('thead', {}, h('tr', {}, ...columns.map((c, n) => h('th', { class: side(n), scope: 'col' }, c.title)))),
      h('tbody', {}, ...rows.map((cells) => h('tr', {}, ...cells.map((cell, n) => h('td', { class: side(n) }, cell)))))));
}

export const variantName = (name: string, n: number): HTMLElement =>
  h('span', {}, h('span', { class: 'dot', style: `background: var(${variantVar(n)})` }), name);

export function durations({ page }: Run): HTMLElement {
  const { variants } = page.summary;
  const medians = variants.map((v) => v.duration_ms.p50).filter((p): p is number => p !== null && p > 0);
  const fastest = Math.min(...medians);
  const titles = ['variant', 'MB', 'n', 'p50', '95 % interval', '× fastest', 'p90', 'p95', 'p99', 'max', 'mean', 'errors', 'cold', 'conn/inv', 'TLS/inv', 'throttled', 'CPU share'];
  const rows = variants.map((v, n) => {
    const d = v.duration_ms;
    const interval = d.p50_interval ? `${number(d.p50_interval[0])} – ${number(d.p50_interval[1])}` : 'n too small';
    return [
      variantName(v.name, n), String(v.memory_mb), String(v.invocations), number(d.p50), h('span', { class: 'faint' }, interval),
      d.p50 && medians.length > 1 ? `${number(d.p50 / fastest)} ×` : '–', number(d.p90), number(d.p95), number(d.p99), number(d.max), number(d.mean),
      String(v.errors), String(v.cold_starts), number(v.connections_per_invocation), number(v.handshakes_per_invocation), percent(v.throttled_ratio), percent(v.cpu_share),
    ];
  });
  return table('Variants', titles.map((title, n) => ({ title, left: n === 0 })), rows);
}

export function expectations({ page }: Run): HTMLElement | null {
  const all = page.summary.expect;
  if (!all.length) return null;
  const rows = all.map((e) => [
    h('span', { class: `tag ${e.within ? 'good' : 'problem'}` }, e.within ? '✓ within' : '✗ missed'), e.name, number(e.published), number(e.measured), number(e.ratio), e.allowed,
    e.reason ? `${e.source}. ${e.reason}` : e.source,
  ]);
  return table('Published and measured', [{ title: '' , left: true }, { title: 'figure', left: true }, { title: 'published' }, { title: 'measured' }, { title: 'ratio' }, { title: 'allowed', left: true }, { title: 'source', left: true, wrap: true }], rows);
}

export function costs({ page }: Run): HTMLElement | null {
  if (!page.costs.length) return null;
  const rows = page.costs.map((c, n) => [variantName(c.variant, n), usd(c.usd_per_million), usd(c.requests_usd), usd(c.usd_per_million - c.requests_usd), number(c.gb_seconds)]);
  return h('div', {},
    table('Cost per million invocations', [{ title: 'variant', left: true }, { title: 'USD per million' }, { title: 'requests' }, { title: 'duration' }, { title: 'GB-seconds' }], rows),
    h('p', { class: 'sub' }, `From the billed durations as measured on this machine's core. Prices: ${page.costs[0].source}; without the free tier.`));
}
