// Causes as cards: what, how much, how sure, what would change it, where to look.

import { h } from './dom';
import { number, percent, usd } from './format';
import { CLOSED_BY, type Run } from './model';
import type { Evidence, Finding } from './schema';

const LEVELS = { problem: 'cause', note: 'note', good: 'good' } as const;

const title = (kind: string): string => {
  const words = (kind === 'throttled' ? 'CPU throttled' : kind).replaceAll('_', ' ').replace('dns', 'DNS').replace('tls', 'TLS').replace('pc ', 'PC ').replace('sdk', 'SDK');
  return words[0].toUpperCase() + words.slice(1);
};

function evidence(e: Evidence): string {
  const value = e.unit === 'ratio' ? percent(e.value) : e.unit === 'USD' ? usd(e.value) : e.unit === '1' ? number(e.value).replace(/\.00$/, '') : `${number(e.value)} ${e.unit}`;
  return `${e.name.replaceAll('_', ' ')} ${value}`;
}

function remedy(f: Finding): HTMLElement | null {
  if (!f.remedy) return null;
  const { saves_ms, saves_usd_per_million: money } = f.remedy;
  const parts = [
    saves_ms === null ? '' : saves_ms >= 0 ? `about ${number(saves_ms)} ms less per invocation` : `${number(-saves_ms)} ms more per invocation`,
    money === null ? '' : money >= 0 ? `${usd(money)} less per million` : `${usd(-money)} more per million`,
  ].filter(Boolean);
  return h('p', { class: 'remedy' }, h('b', {}, 'Remedy: '), f.remedy.text, parts.length ? ` Predicted: ${parts.join(', ')}.` : '');
}

function connection(run: Run, id: number): HTMLElement {
  const c = run.page.connections;
  const row = run.connOf.get(id);
  if (row === undefined) return h('code', {}, `conn-${id}`);
  const closed = c.closed_by[row] ? `, ended by ${CLOSED_BY[c.closed_by[row]]} after ${number(c.closed[row] / 1e6)} s` : '';
  return h('code', { title: `port ${c.port[row]} to ${c.servers[c.server[row]]}, ${c.requests[row]} requests${closed}` }, `conn-${id} :${c.port[row]}`);
}

function card(run: Run, f: Finding, open: (id: string) => void): HTMLElement {
  const many = run.page.summary.variants.length > 1;
  const numbers = f.evidence;
  return h('li', { class: `finding ${f.level}`, 'data-kind': f.kind },
    h('div', { class: 'head' },
      h('span', { class: `tag ${f.level}` }, LEVELS[f.level]),
      h('h3', {}, title(f.kind)),
      f.variant && many ? h('span', { class: 'tag plain' }, f.variant) : null,
      f.share !== null && f.share > 0.0005 ? h('span', { class: 'tag plain' }, `${percent(f.share)} of the time`) : null,
      f.level === 'problem' ? h('span', { class: 'faint' }, `${f.confidence} confidence`) : null,
    ),
    h('p', {}, f.text),
    remedy(f),
    f.examples.length || f.connections.length || numbers.length
      ? h('div', { class: 'evidence' },
          ...(f.examples.length ? [h('span', {}, 'look at'), ...f.examples.map((id) => h('button', { class: 'link', type: 'button', 'aria-label': `open invocation ${id}`, click: () => open(id) }, id.slice(0, 8)))] : []),
          ...f.connections.map((id) => connection(run, id)),
          numbers.length ? h('details', {}, h('summary', {}, `${numbers.length} numbers`), h('ul', { class: 'plain' }, ...numbers.map((e) => h('li', {}, evidence(e))))) : null)
      : null,
  );
}

export function findings(run: Run, open: (id: string) => void): HTMLElement {
  const all = run.page.summary.findings;
  if (!all.length) return h('p', {}, 'Nothing was found that costs time, money or answers.');
  const rank = { problem: 0, note: 1, good: 2 };
  const sorted = [...all].sort((a, b) => rank[a.level] - rank[b.level] || (b.share ?? 0) - (a.share ?? 0));
  return h('ul', { class: 'findings' }, ...sorted.map((f) => card(run, f, open)));
}
