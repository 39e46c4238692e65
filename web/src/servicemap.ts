// Who calls whom: functions on the left, services on the right, an edge per operation with how long it takes.

import { h, s } from './dom';
import { number, percent } from './format';
import { variantVar } from './model';
import type { Edge, Page } from './schema';

const W = 1000;
const ROW = 56;
const BOX = { width: 220, height: 40 };

interface Node { name: string; sub: string; y: number }

const failed = (e: Edge): number => e.faults + e.errors + e.throttles;

/** Positions from the top, spread over the height that the longer column needs. */
function column(names: [string, string][], rows: number): Map<string, Node> {
  const step = (rows * ROW) / names.length;
  return new Map(names.map(([name, sub], n) => [name, { name, sub, y: step * (n + 0.5) }]));
}

function box(node: Node, x: number, color: string): SVGElement {
  const name = node.name.length > 26 ? `${node.name.slice(0, 25)}…` : node.name;
  return s('g', {},
    s('rect', { x, y: node.y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 8, fill: 'var(--card)', stroke: `var(${color})`, 'stroke-width': 2 }),
    s('text', { x: x + 12, y: node.y - 2, 'font-weight': 600 }, name, s('title', {}, node.name)),
    s('text', { x: x + 12, y: node.y + 13, class: 'axis' }, node.sub));
}

function picture(page: Page, edges: Edge[]): SVGElement {
  const callers = [...new Set(edges.map((e) => e.variant))];
  const services = [...new Set(edges.map((e) => e.service))];
  const rows = Math.max(callers.length, services.length, edges.length * 0.5);
  const sum = (of: (e: Edge) => boolean): number => edges.filter(of).reduce((n, e) => n + e.calls, 0);
  const invocations = new Map(page.summary.variants.map((v) => [v.name, v.invocations]));
  const left = column(callers.map((name) => [name, `${invocations.get(name) ?? 0} invocations`]), rows);
  const right = column(services.map((name) => [name, `${sum((e) => e.service === name)} calls`]), rows);
  const color = (variant: string): string => variantVar(page.summary.variants.findIndex((v) => v.name === variant));
  const [from, to] = [BOX.width + 4, W - BOX.width - 4];
  const lines: SVGElement[] = [], words: SVGElement[] = [];
  const perPair = new Map<string, number>();
  const used: number[] = [];
  for (const e of edges) {
    const pair = `${e.variant}\n${e.service}`;
    const nth = perPair.get(pair) ?? 0;
    perPair.set(pair, nth + 1);
    const [a, b] = [left.get(e.variant)!.y, right.get(e.service)!.y];
    const bend = nth * 22;
    const path = `M ${from} ${a} C ${from + 180} ${a + bend}, ${to - 180} ${b + bend}, ${to} ${b}`;
    const bad = failed(e) > 0;
    lines.push(s('path', { d: path, fill: 'none', stroke: bad ? 'var(--bad)' : `var(${color(e.variant)})`, 'stroke-width': 1.2 + Math.log10(Math.max(e.calls, 1)), opacity: 0.55 }));
    // Words do not lie on each other: each takes the next free line below its edge's middle.
    let y = (a + b) / 2 + bend * 0.75 - 5;
    while (used.some((taken) => Math.abs(taken - y) < 14)) y += 14;
    used.push(y);
    words.push(s('text', { x: W / 2, y, 'text-anchor': 'middle', stroke: 'var(--card)', 'stroke-width': 4, 'paint-order': 'stroke' },
      `${e.operation} ${number(e.took_ms.p50)} ms${bad ? `, ${percent(failed(e) / e.calls)} failed` : ''}`));
  }
  const height = Math.max(rows * ROW, ...used.map((y) => y + 10));
  const label = edges.map((e) => `${e.variant} calls ${e.service} ${e.operation}: ${e.calls} calls, median ${number(e.took_ms.p50)} ms`).join('; ');
  return s('svg', { viewBox: `0 0 ${W} ${height}`, role: 'img', 'aria-label': label }, ...lines, ...words,
    ...[...left.values()].map((n) => box(n, 2, color(n.name))), ...[...right.values()].map((n) => box(n, W - BOX.width - 2, '--service')));
}

function table(edges: Edge[]): HTMLElement {
  const titles = ['function', 'calls', 'n', 'failed', '429', 'new connections', 'p50 ms', 'p90 ms', 'p99 ms', 'max ms', 'service p50 ms'];
  const left = (n: number): string => (n < 2 ? 'l' : '');
  const rows = edges.map((e) => [e.variant, `${e.service} ${e.operation}`, String(e.calls), String(e.faults + e.errors), String(e.throttles), percent(e.opened / Math.max(e.calls, 1)),
    ...[e.took_ms.p50, e.took_ms.p90, e.took_ms.p99, e.took_ms.max, e.service_ms.p50].map(number)]);
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Calls by service' }, h('table', {},
    h('thead', {}, h('tr', {}, ...titles.map((t, n) => h('th', { class: left(n), scope: 'col' }, t)))),
    h('tbody', {}, ...rows.map((cells) => h('tr', {}, ...cells.map((cell, n) => h('td', { class: left(n) }, cell)))))));
}

/** Edges drawn at most; the table has all. */
const DRAWN = 24;

export function serviceMap(page: Page): HTMLElement | null {
  if (!page.edges.length) return null;
  const drawn = [...page.edges].sort((a, b) => b.calls - a.calls).slice(0, DRAWN);
  return h('div', {}, h('div', { class: 'detail', style: 'border: 0; margin: 0; padding: 0' }, picture(page, drawn)),
    page.edges.length > DRAWN ? h('p', { class: 'sub' }, `The ${DRAWN} busiest of ${page.edges.length} are drawn.`) : null, table(page.edges));
}
