// Every invocation: filter, sort, open one.

import { h } from './dom';
import { ms, number } from './format';
import { STARTS, type Run } from './model';
import { waterfall } from './waterfall';

const PAGE = 15;
interface Column { title: string; left?: boolean; value: (row: number) => number | string; show: (row: number) => string }

export function invocations(run: Run): { element: HTMLElement | null; open: (id: string) => void } {
  const { page, dispatched, callsOf } = run;
  const i = page.invocations;
  const names = page.summary.variants.map((v) => v.name);
  const opened = (row: number): number => (callsOf.get(row) ?? []).filter((c) => page.calls.tcp[c] >= 0).length;
  const columns: Column[] = [
    { title: 'invocation', left: true, value: (r) => i.id[r], show: (r) => i.id[r].slice(0, 8) },
    { title: 'variant', left: true, value: (r) => names[i.variant[r]] ?? '', show: (r) => names[i.variant[r]] ?? '' },
    { title: 'at', value: (r) => dispatched[r], show: (r) => `${number(dispatched[r] / 1e6)} s` },
    { title: 'start', left: true, value: (r) => i.start[r], show: (r) => STARTS[i.start[r]] },
    { title: 'span', value: (r) => i.span[r], show: (r) => ms(i.span[r]) },
    { title: 'Duration', value: (r) => i.duration[r], show: (r) => ms(i.duration[r]) },
    { title: 'CPU', value: (r) => i.cpu[r], show: (r) => ms(i.cpu[r]) },
    { title: 'throttled', value: (r) => i.throttled[r], show: (r) => ms(i.throttled[r]) },
    { title: 'calls', value: (r) => (callsOf.get(r) ?? []).length, show: (r) => String((callsOf.get(r) ?? []).length) },
    { title: 'opened', value: opened, show: (r) => String(opened(r)) },
    { title: 'memory', value: (r) => i.memory[r], show: (r) => `${i.memory[r]} MB` },
    { title: 'status', left: true, value: (r) => i.failure[r], show: (r) => (i.failure[r] < 0 ? 'ok' : i.failures[i.failure[r]]) },
  ];
  const state = { text: '', variant: '', kind: '', sort: 2, down: false, at: 0, opened: -1 };
  let shown: number[] = [];

  const search = h('input', { type: 'search', placeholder: 'id or status', 'aria-label': 'Filter by id or status', input: () => { state.text = search.value.trim().toLowerCase(); state.at = 0; draw(); } });
  const select = (label: string, choices: [string, string][], change: (value: string) => void): HTMLSelectElement => {
    const box: HTMLSelectElement = h('select', { 'aria-label': label, change: () => { change(box.value); state.at = 0; draw(); } }, ...choices.map(([value, name]) => h('option', { value }, name)));
    return box;
  };
  const variant = select('Variant', [['', 'all variants'], ...names.map((n, v): [string, string] => [String(v), n])], (v) => (state.variant = v));
  const kind = select('Kind', [['', 'all'], ['cold', 'cold starts'], ['failed', 'failed'], ['new', 'opened a connection'], ['slow', 'slowest 5 %']], (v) => (state.kind = v));
  const count = h('span', { class: 'faint', 'aria-live': 'polite' });
  const body = h('tbody');
  const head = h('tr');
  const pager = h('div', { class: 'controls pager', style: 'margin-top: 10px' });
  const detail = h('div', { id: 'detail' });

  const slowest = new Set([...i.span.keys()].sort((a, b) => i.span[b] - i.span[a]).slice(0, Math.max(1, Math.round(i.span.length * 0.05))));
  const matches = (row: number): boolean =>
    (!state.variant || i.variant[row] === Number(state.variant)) &&
    (!state.text || i.id[row].toLowerCase().includes(state.text) || columns[11].show(row).toLowerCase().includes(state.text)) &&
    (!state.kind || (state.kind === 'cold' && i.start[row] !== 1) || (state.kind === 'failed' && i.failure[row] >= 0) || (state.kind === 'new' && opened(row) > 0) || (state.kind === 'slow' && slowest.has(row)));

  function draw(): void {
    shown = [...i.id.keys()].filter(matches);
    const by = columns[state.sort].value;
    const direction = state.down ? -1 : 1;
    const keys = new Map(shown.map((row) => [row, by(row)]));
    shown.sort((a, b) => { const [p, q] = [keys.get(a)!, keys.get(b)!]; return direction * (p < q ? -1 : p > q ? 1 : a - b); });
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    state.at = Math.min(state.at, pages - 1);
    count.textContent = `${shown.length} of ${i.id.length}`;
    head.replaceChildren(...columns.map((c, n) => h('th', { class: c.left ? 'l' : '', scope: 'col', 'aria-sort': state.sort === n ? (state.down ? 'descending' : 'ascending') : 'none' },
      h('button', { class: 'link', type: 'button', click: () => { state.down = state.sort === n ? !state.down : n > 3; state.sort = n; draw(); } }, `${c.title}${state.sort === n ? (state.down ? ' ↓' : ' ↑') : ''}`))));
    body.replaceChildren(...shown.slice(state.at * PAGE, (state.at + 1) * PAGE).map((row) =>
      h('tr', { class: row === state.opened ? 'open' : '' }, ...columns.map((c, n) => h('td', { class: c.left ? 'l' : '' },
        n === 0 ? h('button', { class: 'link', type: 'button', 'data-id': i.id[row], 'aria-expanded': row === state.opened ? 'true' : 'false', 'aria-controls': 'detail', click: () => open(i.id[row]) }, c.show(row)) : c.show(row))))));
    const go = (text: string, label: string, to: number): HTMLElement => h('button', { type: 'button', 'aria-label': label, disabled: to < 0 || to >= pages || to === state.at, click: () => { state.at = to; draw(); } }, text);
    pager.replaceChildren(go('«', 'first page', 0), go('‹', 'previous page', state.at - 1), h('span', {}, `${state.at + 1} / ${pages}`), go('›', 'next page', state.at + 1), go('»', 'last page', pages - 1));
  }

  function open(id: string): void {
    const row = run.rowOf.get(id);
    if (row === undefined) return;
    state.opened = row;
    const at = shown.indexOf(row);
    if (at >= 0) state.at = Math.floor(at / PAGE);
    draw();
    const close = (): void => { state.opened = -1; detail.replaceChildren(); draw(); };
    const heading = h('h3', { tabindex: -1 }, `Invocation ${id}`);
    detail.replaceChildren(h('div', { class: 'detail' }, h('div', { class: 'controls' }, heading, h('button', { type: 'button', click: close }, 'close')), waterfall(run, row)));
    heading.focus({ preventScroll: true });
    detail.scrollIntoView({ block: 'nearest' });
  }

  if (!i.id.length) return { element: null, open };
  draw();
  const element = h('div', {}, h('div', { class: 'controls', role: 'group', 'aria-label': 'Filter' }, search, variant, kind, count),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Invocations' }, h('table', {}, h('thead', {}, head), body)), pager, detail);
  return { element, open };
}
