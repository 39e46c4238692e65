// Environments over time on a canvas: init, invocations, frozen in between; below each env its connections as lines.

import { css, h, listen } from './dom';
import { ms, span, ticks } from './format';
import { CLOSED_BY, PART_VARS, STARTS, variantVar, type Run } from './model';

const LABEL = 92;
const AXIS = 24;
const BAND = 18;
const LANE = 7;
const GAP = 12;
/** Connection lanes per env and envs that are drawn; what is beyond is counted in words. */
const LANES = 10;
const ENVS = 40;
const ZOOM = 1.4;
/** Narrower invocations are drawn in one colour, px. */
const DETAILED = 14;

interface Row { env: number; variant: number; top: number; lanes: number; life: [number, number]; inits: number[]; invocations: number[]; connections: { row: number; lane: number }[]; title: string }

function rows(run: Run): { rows: Row[]; left: number; height: number } {
  const { page, dispatched, syn, end } = run;
  const of = new Map<number, { invocations: number[]; connections: number[] }>();
  const at = (env: number) => { let o = of.get(env); if (!o) of.set(env, (o = { invocations: [], connections: [] })); return o; };
  page.invocations.env.forEach((env, row) => at(env).invocations.push(row));
  page.connections.env.forEach((env, row) => at(env).connections.push(row));
  const lives = page.envs.length ? page.envs : [...of.keys()].map((env) => ({ env, variant: 0, initialization: 'on-demand', created: 0, inits: [], ended: -1 }));
  let top = AXIS + 4;
  const out: Row[] = [];
  for (const life of lives.slice(0, ENVS)) {
    const mine = at(life.env);
    const ends: number[] = [];
    const connections = mine.connections.flatMap((row) => {
      const begin = syn[row];
      const close = page.connections.closed[row] >= 0 ? begin + page.connections.closed[row] : end;
      let lane = ends.findIndex((e) => e < begin);
      if (lane < 0) lane = ends.length;
      if (lane >= LANES) return [];
      ends[lane] = close;
      return [{ row, lane }];
    });
    const first = mine.invocations.length ? dispatched[mine.invocations[0]] : life.created;
    out.push({ env: life.env, variant: life.variant, top, lanes: ends.length, life: [Math.min(life.created, first), life.ended < 0 ? end : life.ended], inits: life.inits, invocations: mine.invocations, connections,
      title: `env-${life.env}${life.initialization === 'on-demand' ? '' : ' PC'}` });
    top += BAND + ends.length * LANE + GAP;
  }
  return { rows: out, left: Math.max(0, lives.length - ENVS), height: top };
}

export function timeline(run: Run, open: (id: string) => void): HTMLElement | null {
  const { page, dispatched, syn, end } = run;
  const laid = rows(run);
  if (!laid.rows.length) return null;
  const begin = Math.min(0, ...laid.rows.map((r) => r.life[0]));
  let view: [number, number] = [begin, end * 1.005];
  const many = page.summary.variants.length > 1;
  const label = `${laid.rows.length} environments, ${page.invocations.id.length} invocations and ${page.connections.conn.length} connections over ${span(end)}. The table of invocations below has the same facts.`;
  const canvas = h('canvas', { class: 'timeline', role: 'img', tabindex: 0, 'aria-label': label });
  const tip = h('div', { class: 'tip', hidden: true });
  const width = (): number => canvas.clientWidth || 800;
  const x = (us: number): number => LABEL + ((us - view[0]) / (view[1] - view[0])) * (width() - LABEL);
  const time = (px: number): number => view[0] + ((px - LABEL) / (width() - LABEL)) * (view[1] - view[0]);

  const draw = (): void => {
    const scale = devicePixelRatio || 1;
    canvas.width = width() * scale;
    canvas.height = laid.height * scale;
    canvas.style.height = `${laid.height}px`;
    const g = canvas.getContext('2d')!;
    g.scale(scale, scale);
    const color = new Map<string, string>();
    const of = (name: string): string => { let c = color.get(name); if (!c) color.set(name, (c = css(name))); return c; };
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    for (const t of ticks(view[0], view[1], width() / 130)) {
      g.fillStyle = of('--line'); g.fillRect(x(t), AXIS - 4, 1, laid.height);
      g.fillStyle = of('--soft'); g.fillText(span(t), x(t) + 4, AXIS / 2);
    }
    const bar = (from: number, to: number, top: number, height: number, fill: string): void => {
      const a = Math.max(x(from), LABEL), b = Math.min(x(to), width());
      if (b < LABEL || a > width()) return;
      g.fillStyle = fill; g.fillRect(a, top, Math.max(b - a, 1), height);
    };
    for (const row of laid.rows) {
      g.fillStyle = of(variantVar(Math.max(row.variant, 0)));
      if (many) g.fillRect(0, row.top + 3, 4, BAND - 6);
      g.fillStyle = of('--ink'); g.fillText(row.title, many ? 10 : 0, row.top + BAND / 2);
      bar(row.life[0], row.life[1], row.top, BAND, of('--frozen'));
      for (let n = 0; n < row.inits.length; n += 2) bar(row.inits[n], row.inits[n + 1], row.top, BAND, of('--init'));
      for (const i of row.invocations) {
        const from = dispatched[i], to = from + page.invocations.span[i];
        if (to < view[0] || from > view[1]) continue;
        const segments = page.invocations.segments[i];
        if (x(to) - x(from) < DETAILED || !segments.length) {
          bar(from, to, row.top, BAND, page.invocations.failure[i] >= 0 ? of('--bad') : of(variantVar(Math.max(row.variant, 0))));
        } else {
          let t = from;
          for (let n = 0; n < segments.length; n += 2) { bar(t, t + segments[n + 1], row.top, BAND, of(PART_VARS[segments[n]])); t += segments[n + 1]; }
        }
        bar(to, to + page.invocations.after[i], row.top + BAND / 2 - 2, 4, of('--soft'));
      }
      for (const c of row.connections) {
        const y = row.top + BAND + 2 + c.lane * LANE;
        const from = syn[c.row], close = page.connections.closed[c.row];
        const to = close >= 0 ? from + close : row.life[1];
        if (to < view[0] || from > view[1]) continue;
        bar(from, to, y + 2, 1.5, of('--wait'));
        bar(from, from + Math.max(page.connections.established[c.row], 0), y, 5, of('--tcp'));
        if (close >= 0 && x(to) > LABEL) {
          const by = page.connections.closed_by[c.row];
          g.strokeStyle = of(by % 2 ? '--wire' : '--bad'); g.lineWidth = 1.6; g.beginPath();
          const cx = x(to), cy = y + 2.75;
          g.moveTo(cx - 3, cy - 3); g.lineTo(cx + 3, cy + 3);
          if (by > 2 || by === 2) { g.moveTo(cx - 3, cy + 3); g.lineTo(cx + 3, cy - 3); }
          g.stroke();
        }
      }
      const laneOf = new Map(row.connections.map((c) => [page.connections.conn[c.row], c.lane]));
      for (const i of row.invocations) {
        for (const call of run.callsOf.get(i) ?? []) {
          const lane = laneOf.get(page.calls.conn[call]);
          if (lane === undefined) continue;
          const t = dispatched[i] + page.calls.from[call];
          const y = row.top + BAND + 2 + lane * LANE;
          if (page.calls.tcp[call] >= 0) bar(t, t + page.calls.sent[call], y, 5, of('--tls'));
          bar(t + page.calls.sent[call], t + page.calls.done[call], y, 5, of('--service'));
        }
      }
    }
  };

  const clamp = (from: number, to: number): void => {
    const length = Math.min(Math.max(to - from, 20), end * 1.02 - begin);
    const start = Math.min(Math.max(from, begin), Math.max(begin, end * 1.01 - length));
    view = [start, start + length];
    requestAnimationFrame(draw);
  };
  const zoom = (factor: number, around = (view[0] + view[1]) / 2): void =>
    clamp(around - (around - view[0]) / factor, around + (view[1] - around) / factor);
  const move = (share: number): void => { const d = (view[1] - view[0]) * share; clamp(view[0] + d, view[1] + d); };

  const found = (event: MouseEvent): { invocation?: number; connection?: number } => {
    const box = canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const row = laid.rows.find((r) => py >= r.top && py < r.top + BAND + r.lanes * LANE + 4);
    if (!row || px < LABEL) return {};
    const t = time(px), slack = time(px + 3) - t;
    if (py < row.top + BAND) {
      return { invocation: row.invocations.find((i) => t >= dispatched[i] - slack && t <= dispatched[i] + page.invocations.span[i] + slack) };
    }
    const lane = Math.floor((py - row.top - BAND - 1) / LANE);
    const hit = row.connections.find((c) => c.lane === lane && t >= syn[c.row] - slack && t <= (page.connections.closed[c.row] >= 0 ? syn[c.row] + page.connections.closed[c.row] : row.life[1]) + slack);
    return { connection: hit?.row };
  };
  const words = ({ invocation: i, connection: c }: { invocation?: number; connection?: number }): string => {
    if (i !== undefined) return `${page.invocations.id[i].slice(0, 8)} · ${page.summary.variants[page.invocations.variant[i]]?.name ?? ''} · ${STARTS[page.invocations.start[i]]} · ${ms(page.invocations.span[i])}`;
    if (c === undefined) return '';
    const closed = page.connections.closed_by[c] ? `ended by ${CLOSED_BY[page.connections.closed_by[c]]} ${span(page.connections.closed[c] - Math.max(page.connections.last_byte[c], 0))} after its last byte` : 'open to the end';
    return `conn-${page.connections.conn[c]} :${page.connections.port[c]} to ${page.connections.servers[page.connections.server[c]]} · ${page.connections.requests[c]} requests · ${closed}`;
  };

  let drag: { x: number; view: [number, number]; moved: boolean } | null = null;
  canvas.addEventListener('pointerdown', (e) => { drag = { x: e.clientX, view: [...view], moved: false }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointermove', (e) => {
    if (drag) {
      const d = ((e.clientX - drag.x) / (width() - LABEL)) * (drag.view[1] - drag.view[0]);
      if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true;
      if (drag.moved) clamp(drag.view[0] - d, drag.view[1] - d);
      return;
    }
    const text = words(found(e));
    tip.hidden = !text;
    tip.textContent = text;
    tip.style.left = `${Math.min(e.clientX + 14, innerWidth - 350)}px`;
    tip.style.top = `${e.clientY + 16}px`;
  });
  canvas.addEventListener('pointerup', (e) => {
    const hit = drag && !drag.moved ? found(e).invocation : undefined;
    drag = null;
    if (hit !== undefined) open(page.invocations.id[hit]);
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.metaKey && document.activeElement !== canvas && Math.abs(e.deltaX) < Math.abs(e.deltaY) && view[0] <= begin && view[1] >= end && e.deltaY > 0) return;
    e.preventDefault();
    const px = e.clientX - canvas.getBoundingClientRect().left;
    zoom(e.deltaY < 0 ? ZOOM : 1 / ZOOM, time(Math.max(px, LABEL)));
  }, { passive: false });
  canvas.addEventListener('keydown', (e) => {
    const keys: Record<string, () => void> = { '+': () => zoom(ZOOM), '=': () => zoom(ZOOM), '-': () => zoom(1 / ZOOM), ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), '0': () => clamp(begin, end * 1.005) };
    const act = keys[e.key];
    if (act) { e.preventDefault(); act(); }
  });

  const button = (text: string, label: string, act: () => void): HTMLElement => h('button', { type: 'button', 'aria-label': label, click: act }, text);
  const legend: [string, string][] = [['--init', 'init'], ['--frozen', 'frozen or idle'], ['--tcp', 'TCP connect'], ['--tls', 'connection set-up'], ['--service', 'request'], ['--wait', 'idle connection'], ['--bad', '× ended by the endpoint'], ['--wire', '\\ ended by the client']];
  const element = h('div', {},
    h('div', { class: 'controls', role: 'group', 'aria-label': 'Zoom' }, button('+', 'zoom in', () => zoom(ZOOM * ZOOM)), button('−', 'zoom out', () => zoom(1 / ZOOM / ZOOM)),
      button('←', 'earlier', () => move(-0.3)), button('→', 'later', () => move(0.3)), button('all', 'show all', () => clamp(begin, end * 1.005))),
    canvas,
    h('div', { class: 'legend' }, ...legend.map(([v, name]) => h('span', {}, h('span', { class: 'dot', style: `background: var(${v})` }), name))),
    laid.left ? h('p', { class: 'sub' }, `${laid.left} more environments are not drawn.`) : null, tip);
  new IntersectionObserver((seen, observer) => { if (seen.some((e) => e.isIntersecting)) { observer.disconnect(); draw(); } }, { rootMargin: '300px' }).observe(element);
  listen(element, matchMedia('(prefers-color-scheme: dark)'), 'change', draw);
  listen(element, window, 'resize', draw);
  listen(element, window, 'beforeprint', draw);
  return element;
}
