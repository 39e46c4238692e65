// The dashboard of `danki up`: what there is now, invocations as they end, and the report's own sections over the newest of them.
// Facts come as server-sent events; the sections are fetched when there is news, at most every two seconds.

import './style.css';
import { h } from './dom';
import { number } from './format';
import { prepare, type Run } from './model';
import { findings } from './findings';
import { parts } from './parts';
import { serviceMap } from './servicemap';
import { timeline } from './timeline';
import { waterfall } from './waterfall';
import type { Live, LiveEnv, LiveFunction, LiveInvocation, News, Page } from './schema';

const BASE = '/_danki/ui';
/** Rows that are kept and shown. */
const ROWS = 200;
/** Time between two fetches of the sections. */
const REFRESH_MS = 2000;
/** Envs that are shown one by one. */
const ENVS = 120;

const STATES: Record<string, [color: string, word: string]> = {
  initialising: ['--init', 'init'], idle: ['--wait', 'idle'], frozen: ['--frozen-dot', 'frozen'], allocated: ['--thaw', 'allocated, not yet READY'],
  busy: ['--service', 'busy'], waiting: ['--note', 'waiting for a forced gap'], ending: ['--bad', 'ending'],
};

interface Seen { live: Live | null; rows: LiveInvocation[]; missed: number; run: Run | null; opened: string; paused: boolean; text: string }
const seen: Seen = { live: null, rows: [], missed: 0, run: null, opened: '', paused: false, text: '' };

const cell = (left: boolean, ...of: (Node | string)[]): HTMLElement => h('td', { class: left ? 'l' : '' }, ...of);
const dot = (color: string): HTMLElement => h('span', { class: 'dot', style: `background: var(${color})` });
const stateOf = (env: LiveEnv): string => (env.state === 'idle' && seen.live?.freezes ? 'frozen' : env.state);

const status = h('span', { class: 'chip', role: 'status' }, 'connecting');
const chips = h('div', { class: 'chips' });
const tiles = h('div', { class: 'verdict', role: 'group', 'aria-label': 'Now' });
const functions = h('div');
const envs = h('div');
const count = h('span', { class: 'faint' });
const body = h('tbody');
const detail = h('div', { id: 'detail' });
const sections = h('div');

function section(id: string, title: string, sub: string, ...of: Node[]): HTMLElement {
  return h('section', { id, 'aria-labelledby': `${id}-h` }, h('h2', { id: `${id}-h` }, title), h('p', { class: 'sub' }, sub), ...of);
}

function tile(kind: string, big: string, small: string): HTMLElement {
  return h('div', { class: `tile ${kind}` }, h('b', {}, big), h('span', {}, small));
}

function table(label: string, titles: [string, boolean][], rows: HTMLElement[]): HTMLElement {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, h('table', {},
    h('thead', {}, h('tr', {}, ...titles.map(([title, left]) => h('th', { class: left ? 'l' : '', scope: 'col' }, title)))), h('tbody', {}, ...rows)));
}

function drawLive(live: Live): void {
  const states = new Map<string, number>();
  live.envs.forEach((env) => states.set(stateOf(env), (states.get(stateOf(env)) ?? 0) + 1));
  const sum = (of: (f: LiveFunction) => number): number => live.functions.reduce((total, f) => total + of(f), 0);
  const [invocations, errors, throttles] = [sum((f) => f.invocations), sum((f) => f.errors), sum((f) => f.throttles)];
  chips.replaceChildren(status, ...[`danki ${live.danki}`, live.region, `since ${new Date(live.started_epoch_ms).toLocaleTimeString()}`,
    live.dropped ? `${live.dropped} facts dropped: more at once than could be kept` : ''].filter(Boolean).map((c) => h('span', { class: 'chip' }, c)));
  tiles.replaceChildren(
    tile('', String(live.functions.length), live.functions.length === 1 ? 'function' : 'functions'),
    tile(states.get('busy') ? 'good' : '', String(live.envs.length), ['environments', ...[...states].map(([state, n]) => `${n} ${STATES[state]?.[1] ?? state}`)].join(', ')),
    tile('', String(invocations), 'invocations'),
    tile(errors ? 'bad' : '', String(errors), 'failed'),
    tile(throttles ? 'bad' : '', String(throttles), 'throttled (429)'));
  functions.replaceChildren(live.functions.length ? table('Functions', [['function', true], ['runtime', true], ['MB', false], ['state', true], ['environments', true], ['invocations', false],
    ['failed', false], ['429', false], ['reserved', false], ['provisioned', false]], live.functions.map((f) => functionRow(live, f)))
    : h('p', {}, 'No function is deployed yet. Any AWS SDK, SAM template or the AWS CLI can deploy one: docs/up.md.'));
  drawEnvs(live);
}

function functionRow(live: Live, f: LiveFunction): HTMLElement {
  const states = new Map<string, number>();
  live.envs.filter((env) => env.function === f.name).forEach((env) => states.set(stateOf(env), (states.get(stateOf(env)) ?? 0) + 1));
  const words = [...states].map(([state, n]) => h('span', { style: 'margin-right: 10px' }, dot(STATES[state]?.[0] ?? '--rest'), `${n} ${STATES[state]?.[1] ?? state}`));
  return h('tr', { 'data-function': f.name }, cell(true, f.name), cell(true, f.runtime), cell(false, String(f.memory_mb)), cell(true, f.state), cell(true, ...(words.length ? words : ['none'])),
    ...[f.invocations, f.errors, f.throttles].map((n) => cell(false, String(n))), cell(false, f.reserved === null ? '–' : String(f.reserved)), cell(false, f.provisioned ? String(f.provisioned) : '–'));
}

function drawEnvs(live: Live): void {
  const now = Date.now();
  const since = (at: number): string => { const s = Math.max(0, Math.round((now - at) / 1000)); return s < 90 ? `${s} s` : `${Math.round(s / 60)} min`; };
  const item = (env: LiveEnv): HTMLElement => {
    const [color, word] = STATES[stateOf(env)] ?? ['--rest', stateOf(env)];
    const version = env.version === '$LATEST' ? '' : `:${env.version}`;
    return h('li', { class: 'env', 'data-state': stateOf(env) }, dot(color), `env-${env.env} `, h('b', {}, env.function + version), ` ${word} for ${since(env.since_epoch_ms)}`, env.provisioned ? h('span', { class: 'tag plain' }, 'PC') : null);
  };
  envs.replaceChildren(live.envs.length ? h('ul', { class: 'envs' }, ...live.envs.slice(0, ENVS).map(item)) : h('p', {}, 'None: the next invocation is a cold start.'),
    ...(live.envs.length > ENVS ? [h('p', { class: 'sub' }, `${live.envs.length - ENVS} more are not shown.`)] : []));
}

function drawRows(): void {
  const fits = (row: LiveInvocation): boolean => !seen.text || [row.id, row.function, row.status, row.start].some((word) => word.toLowerCase().includes(seen.text));
  const shown = seen.rows.filter(fits).slice(-ROWS).reverse();
  count.textContent = `${shown.length} of the last ${seen.rows.length}${seen.missed ? `; ${seen.missed} came too fast for this page` : ''}`;
  body.replaceChildren(...shown.map((row) => h('tr', { class: row.id === seen.opened ? 'open' : '' },
    cell(true, h('button', { class: 'link', type: 'button', 'data-id': row.id, 'aria-expanded': row.id === seen.opened ? 'true' : 'false', 'aria-controls': 'detail', click: () => void open(row.id) }, row.id.slice(0, 8))),
    cell(true, row.function), cell(true, new Date(row.at_epoch_ms).toLocaleTimeString()), cell(true, row.start), cell(true, row.status === 'ok' ? 'ok' : h('span', { class: 'tag problem' }, row.status)),
    ...[row.span_ms, row.duration_ms, row.init_ms, row.cpu_ms, row.throttled_ms].map((value) => cell(false, value === null ? '–' : `${number(value)} ms`)), cell(false, `${row.memory_used_mb} MB`), cell(true, `env-${row.env}`))));
}

async function fetchRun(): Promise<Run | null> {
  const answer = await fetch(`${BASE}/page`);
  if (!answer.ok) return null;
  const page = (await answer.json()) as Page | null;
  return page && prepare(page);
}

/** Opens an invocation. Its parts may have to be fetched; the oldest are no longer kept. */
async function open(id: string): Promise<void> {
  seen.opened = id;
  drawRows();
  if (seen.run?.rowOf.get(id) === undefined) seen.run = await fetchRun();
  const row = seen.run?.rowOf.get(id);
  const close = (): void => { seen.opened = ''; detail.replaceChildren(); drawRows(); };
  const heading = h('h3', { tabindex: -1 }, `Invocation ${id}`);
  detail.replaceChildren(h('div', { class: 'detail' }, h('div', { class: 'controls' }, heading, h('button', { type: 'button', click: close }, 'close')),
    seen.run && row !== undefined ? waterfall(seen.run, row) : h('p', {}, 'Its parts are no longer kept: the dashboard has those of the last 300 invocations.')));
  heading.focus({ preventScroll: true });
  detail.scrollIntoView({ block: 'nearest' });
}

function drawSections(run: Run): void {
  const n = run.page.invocations.id.length;
  const toOpen = (id: string): void => void open(id);
  const some: [string, string, string, Node | null][] = [
    ['findings', 'Findings', `Of the last ${n} invocations. For a sound answer run danki bench: one load, nothing else at work.`, findings(run, toOpen)],
    ['parts', 'Where the time went', 'All shown invocations of a function together, from dispatch to response.', parts(run)],
    ['services', 'Services', 'Who calls whom; times as the caller sees them.', serviceMap(run.page)],
    ['timeline', 'Timeline', 'Environments with their invocations; below each, its connections. Pause to look closer: + and − zoom, click an invocation to open it.', timeline(run, toOpen)],
  ];
  sections.replaceChildren(...some.flatMap(([id, title, sub, element]) => (element ? [section(id, title, sub, element)] : [])));
}

let wanted = false;
let fetching = false;

/** One fetch at a time, and none while nobody looks. */
async function refresh(): Promise<void> {
  if (!wanted || fetching || seen.paused || document.hidden) return;
  wanted = false;
  fetching = true;
  try {
    const run = await fetchRun();
    if (run && !seen.paused) {
      seen.run = run;
      if (run.page.invocations.id.length) drawSections(run);
      document.documentElement.dataset.sections = String(run.page.invocations.id.length);
    }
  } catch {
    wanted = true; // danki has ended, or is about to answer again
  }
  fetching = false;
}

function follow(): void {
  const source = new EventSource(`${BASE}/events`);
  source.addEventListener('open', () => { status.textContent = 'live'; status.dataset.state = 'live'; });
  source.addEventListener('error', () => { status.textContent = 'danki does not answer; trying again'; status.dataset.state = 'lost'; });
  source.addEventListener('live', (event) => {
    seen.live = JSON.parse(event.data) as Live;
    if (!seen.paused) drawLive(seen.live);
  });
  source.addEventListener('news', (event) => {
    const news = JSON.parse(event.data) as News;
    // After a reconnection the newest come once more.
    const known = new Set(seen.rows.map((row) => row.id));
    seen.rows.push(...news.invocations.filter((row) => !known.has(row.id)));
    seen.rows.splice(0, Math.max(0, seen.rows.length - 2 * ROWS));
    seen.missed += news.missed;
    wanted = true;
    if (!seen.paused) drawRows();
  });
}

function start(): void {
  const search = h('input', { type: 'search', placeholder: 'id, function or status', 'aria-label': 'Filter by id, function or status', input: () => { seen.text = search.value.trim().toLowerCase(); drawRows(); } });
  const pause = h('button', { type: 'button', 'aria-pressed': 'false', click: () => {
    seen.paused = !seen.paused;
    pause.setAttribute('aria-pressed', String(seen.paused));
    pause.textContent = seen.paused ? 'go on' : 'pause';
    if (!seen.paused) { if (seen.live) drawLive(seen.live); drawRows(); wanted = true; }
  } }, 'pause');
  const titles: [string, boolean][] = [['invocation', true], ['function', true], ['at', true], ['start', true], ['status', true], ['span', false], ['Duration', false], ['Init', false], ['CPU', false], ['throttled', false], ['memory', false], ['env', true]];
  const rows = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Invocations' },
    h('table', {}, h('thead', {}, h('tr', {}, ...titles.map(([title, left]) => h('th', { class: left ? 'l' : '', scope: 'col' }, title)))), body));
  chips.append(status);
  document.getElementById('app')!.replaceChildren(
    h('header', { class: 'top' }, h('div', { class: 'brand' }, 'danki up'), h('h1', {}, 'Functions as they run'), chips),
    h('main', {}, h('div', { class: 'controls' }, pause), tiles,
      section('functions', 'Functions', 'Counts since danki started; versions together.', functions),
      section('environments', 'Environments', 'Each runs one invocation at a time, and is frozen between two.', envs),
      section('invocations', 'Invocations', 'As they end, newest first. Open one to see where its time went.', h('div', { class: 'controls', role: 'group', 'aria-label': 'Filter' }, search, count), rows, detail),
      sections),
    h('footer', {}, 'This page asks no address but this one for anything. Looking costs danki a little CPU: close it while you measure.'));
  drawRows();
  follow();
  setInterval(() => void refresh(), REFRESH_MS);
  setInterval(() => { if (seen.live && !seen.paused && !document.hidden) drawEnvs(seen.live); }, 1000);
  document.documentElement.dataset.ready = 'true';
}

start();
