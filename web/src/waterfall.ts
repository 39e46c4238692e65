// One invocation: its parts in order, and its calls below them on the same scale.

import { h, s } from './dom';
import { ms, number, percent, span, ticks } from './format';
import { PART_VARS, STARTS, type Run } from './model';

const W = 1100;
const LEFT = 190;
const ROW = 26;

const x = (us: number, total: number): number => LEFT + (us / total) * (W - LEFT - 10);

function box(from: number, to: number, total: number, y: number, height: number, part: string, title: string): SVGElement {
  const a = x(Math.max(0, from), total), b = x(Math.min(Math.max(to, 0), total), total);
  return s('rect', { x: a, y, width: Math.max(b - a, 0.7), height, rx: 1.5, fill: `var(${part})` }, s('title', {}, title));
}

function picture(run: Run, row: number): SVGElement {
  const { page } = run;
  const i = page.invocations, c = page.calls;
  const total = Math.max(i.span[row], 1);
  const calls = (run.callsOf.get(row) ?? []).slice(0, 60);
  const height = 30 + ROW * (calls.length + 1) + 14;
  const grid = ticks(0, total, 8).flatMap((t) => [
    s('line', { x1: x(t, total), x2: x(t, total), y1: 20, y2: height - 6, class: 'grid' }),
    s('text', { x: x(t, total) + 3, y: 14, class: 'axis' }, span(t)),
  ]);
  const marks: SVGElement[] = [s('text', { x: 0, y: 30 + 15 }, 'time went to')];
  let t = 0;
  const segments = i.segments[row];
  for (let n = 0; n < segments.length; n += 2) {
    const [part, length] = [segments[n], segments[n + 1]];
    marks.push(box(t, t + length, total, 30, ROW - 6, PART_VARS[part], `${page.parts[part]}: ${ms(length)}, from ${ms(t)}`));
    t += length;
  }
  calls.forEach((call, n) => {
    const y = 30 + ROW * (n + 1);
    const from = c.from[call];
    const label = c.names[c.name[call]];
    marks.push(s('text', { x: 0, y: y + 15 }, label.length > 27 ? `${label.slice(0, 26)}…` : label));
    let at = from;
    if (c.tcp[call] >= 0) {
      // Set-up lies right before the request; what is between its pieces is the client's own work.
      const dns = Math.max(c.dns[call], 0), tls = Math.max(c.tls[call], 0);
      const sent = from + c.sent[call];
      if (dns) marks.push(box(from, from + dns, total, y + 3, ROW - 12, '--dns', `DNS ${ms(dns)}`));
      const tcp = sent - tls - c.tcp[call];
      marks.push(box(Math.max(tcp, from + dns), Math.max(tcp, from + dns) + c.tcp[call], total, y + 3, ROW - 12, '--tcp', `TCP connect ${ms(c.tcp[call])}`));
      if (tls) marks.push(box(sent - tls, sent, total, y + 3, ROW - 12, '--tls', `TLS handshake ${ms(tls)}`));
      marks.push(s('line', { x1: x(from, total), x2: x(sent, total), y1: y + ROW / 2 - 3, y2: y + ROW / 2 - 3, stroke: 'var(--wait)', 'stroke-width': 1 }));
      at = sent;
    }
    marks.push(box(at, from + c.read[call], total, y + 3, ROW - 12, '--wire', 'request on its way'));
    marks.push(box(from + c.read[call], from + c.answered[call], total, y + 3, ROW - 12, '--service', `service time ${ms(c.answered[call] - c.read[call])}`));
    marks.push(box(from + c.answered[call], from + c.done[call], total, y + 3, ROW - 12, '--wire', 'response on its way'));
  });
  return s('svg', { viewBox: `0 0 ${W} ${height}`, role: 'img', 'aria-label': `Waterfall of ${ms(i.span[row])}; the same as a table beside it` }, ...grid, ...marks);
}

function partsTable(run: Run, row: number): HTMLElement {
  const { page } = run;
  const sums = page.parts.map(() => 0);
  const segments = page.invocations.segments[row];
  for (let n = 0; n < segments.length; n += 2) sums[segments[n]] += segments[n + 1];
  const total = sums.reduce((a, b) => a + b, 0);
  const rows = sums.flatMap((us, part) => us ? [h('tr', { 'data-part': page.parts[part] },
    h('td', { class: 'l' }, h('span', { class: 'dot', style: `background: var(${PART_VARS[part]})` }), page.parts[part]), h('td', {}, ms(us)), h('td', {}, percent(us / total)))] : []);
  return h('table', { class: 'parts' }, h('thead', {}, h('tr', {}, h('th', { class: 'l', scope: 'col' }, 'part'), h('th', { scope: 'col' }, 'time'), h('th', { scope: 'col' }, 'share'))),
    h('tbody', {}, ...rows, h('tr', {}, h('td', { class: 'l' }, h('b', {}, 'sum')), h('td', {}, h('b', {}, ms(total))), h('td', {}, '100 %'))));
}

function callsTable(run: Run, row: number): HTMLElement | null {
  const { page } = run;
  const c = page.calls;
  const calls = run.callsOf.get(row) ?? [];
  if (!calls.length) return null;
  const titles = ['call', 'ms', 'connection', 'DNS', 'TCP', 'TLS', 'service', 'status'];
  const cell = (us: number): string => (us < 0 ? '–' : number(us / 1000));
  const rows = calls.slice(0, 60).map((n) => {
    const kept = c.tcp[n] < 0;
    const how = kept ? `:${port(run, c.conn[n])} kept, idle ${span(Math.max(c.idle[n], 0))}` : `:${port(run, c.conn[n])} new`;
    return [c.names[c.name[n]], number(c.done[n] / 1000), how, cell(c.dns[n]), cell(c.tcp[n]), cell(c.tls[n]), number((c.answered[n] - c.read[n]) / 1000), String(c.status[n])];
  });
  const left = (n: number): string => (n === 0 || n === 2 ? 'l' : '');
  return h('div', {}, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Calls' }, h('table', {}, h('thead', {}, h('tr', {}, ...titles.map((t, n) => h('th', { class: left(n), scope: 'col' }, t)))),
    h('tbody', {}, ...rows.map((cells) => h('tr', {}, ...cells.map((v, n) => h('td', { class: left(n) }, v))))))),
    calls.length > 60 ? h('p', { class: 'sub' }, `${calls.length - 60} more calls.`) : null);
}

const port = (run: Run, conn: number): number => run.page.connections.port[run.connOf.get(conn) ?? -1] ?? 0;

export function waterfall(run: Run, row: number): HTMLElement {
  const i = run.page.invocations;
  const facts = [
    `env-${i.env[row]}`, STARTS[i.start[row]], `Duration ${ms(i.duration[row])}`, i.init[row] >= 0 ? `Init Duration ${ms(i.init[row])}` : '',
    `CPU ${ms(i.cpu[row])}`, `throttled ${ms(i.throttled[row])}`, `${i.memory[row]} MB`, `${ms(i.after[row])} after the response`, i.failure[row] >= 0 ? i.failures[i.failure[row]] : '',
  ];
  const chips = h('div', { class: 'chips', style: 'margin: 0 0 12px' }, ...facts.filter(Boolean).map((f) => h('span', { class: 'chip' }, f)));
  if (!i.segments[row].length) return h('div', {}, chips, h('p', {}, 'The parts of this invocation are not in this file (a long run keeps the slowest and every n-th); waterfalls.jsonl has them all.'));
  return h('div', {}, chips, picture(run, row), h('div', { class: 'two', style: 'margin-top: 12px' }, partsTable(run, row), callsTable(run, row)));
}
