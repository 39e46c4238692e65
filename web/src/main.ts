// The report: verdict and findings first, then numbers, then pictures, then every invocation.

import './style.css';
import { h } from './dom';
import { prepare, unpack, type Run } from './model';
import { header, verdict } from './verdict';
import { findings } from './findings';
import { durations, expectations, costs } from './tables';
import { parts } from './parts';
import { distributions } from './distributions';
import { timeline } from './timeline';
import { invocations } from './invocations';
import { databases } from './databases';
import { footer } from './footer';

/** A section with its heading, or nothing if there is nothing to show. */
function section(id: string, title: string, sub: string, body: Node | null): HTMLElement | null {
  return body && h('section', { id, 'aria-labelledby': `${id}-h` }, h('h2', { id: `${id}-h` }, title), sub ? h('p', { class: 'sub' }, sub) : null, body);
}

function show(run: Run): void {
  const app = document.getElementById('app')!;
  const table = invocations(run);
  const open = (id: string): void => table.open(id);
  const sections: [string, HTMLElement | null][] = [
    ['Findings', section('findings', 'Findings', 'What the facts say, with what they stand on. A saving is predicted from this run.', findings(run, open))],
    ['Variants', section('variants', 'Variants', 'Duration of the REPORT line in ms, failures included; quantiles by nearest rank, median with its 95 % interval.', durations(run))],
    ['Parts', section('parts', 'Where the time went', 'All invocations of a variant together, from dispatch to response. Parts sum exactly to the whole.', parts(run))],
    ['Distribution', section('distribution', 'Distribution', 'Duration of every invocation. Drag to zoom, double-click to see all.', distributions(run))],
    ['Expected', section('expected', 'Published and measured', '', expectations(run))],
    ['Timeline', section('timeline', 'Timeline', 'Environments with their invocations; below each, its connections. Wheel or + and − to zoom, drag or arrows to move, click an invocation to open it.', timeline(run, open))],
    ['Databases', section('databases', 'Database connections', '', databases(run))],
    ['Invocations', section('invocations', 'Invocations', 'Filter, sort, and open one to see where its time went.', table.element)],
    ['Cost', section('cost', 'Cost', '', costs(run))],
    ['About', section('about', 'What to know before quoting a number', '', footer(run))],
  ];
  const there = sections.filter(([, element]) => element);
  app.replaceChildren(
    header(run),
    h('nav', { class: 'jump', 'aria-label': 'Sections' }, ...there.map(([name, e]) => h('a', { href: `#${e!.id}` }, name))),
    h('main', {}, verdict(run), ...there.map(([, e]) => e)),
    h('footer', {}, `danki ${run.page.manifest.danki} · this file is complete: it asks no other address for anything`),
  );
  document.documentElement.dataset.ready = 'true';
  if (location.hash.startsWith('#i=')) open(location.hash.slice(3));
}

unpack(document.getElementById('data')!.textContent ?? '')
  .then((page) => show(prepare(page)))
  .catch((error: unknown) => {
    document.getElementById('app')!.textContent = `This report cannot be read: ${String(error)}`;
  });
