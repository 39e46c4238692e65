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
import { serviceMap } from './servicemap';
import { footer } from './footer';

/** A section with its heading, or nothing if there is nothing to show. */
function section(id: string, title: string, sub: string, body: Node | null): HTMLElement | null {
  return body && h('section', { id, 'aria-labelledby': `${id}-h` }, h('h2', { id: `${id}-h` }, title), sub ? h('p', { class: 'sub' }, sub) : null, body);
}

type Section = [name: string, id: string, title: string, sub: string, body: () => Node | null];

function show(run: Run): void {
  const app = document.getElementById('app')!;
  let openRow: (id: string) => void = () => {};
  const open = (id: string): void => openRow(id);
  const sections: Section[] = [
    ['Findings', 'findings', 'Findings', 'What the facts say, with what they stand on. A saving is predicted from this run.', () => findings(run, open)],
    ['Variants', 'variants', 'Variants', 'Duration of the REPORT line in ms, failures included; quantiles by nearest rank, median with its 95 % interval.', () => durations(run)],
    ['Parts', 'parts', 'Where the time went', 'All invocations of a variant together, from dispatch to response. Parts sum exactly to the whole.', () => parts(run)],
    ['Distribution', 'distribution', 'Distribution', 'Duration of every invocation. Drag to zoom, double-click to see all.', () => distributions(run)],
    ['Expected', 'expected', 'Published and measured', '', () => expectations(run)],
    ['Timeline', 'timeline', 'Timeline', 'Environments with their invocations; below each, its connections. Wheel or + and − to zoom, drag or arrows to move, click an invocation to open it.', () => timeline(run, open)],
    ['Services', 'services', 'Services', 'Who calls whom, how often, and how long it takes as the caller sees it, connection set-up included.', () => serviceMap(run.page)],
    ['Databases', 'databases', 'Database connections', '', () => databases(run)],
    ['Invocations', 'invocations', 'Invocations', 'Filter, sort, and open one to see where its time went.', () => { const table = invocations(run); openRow = table.open; return table.element; }],
    ['Cost', 'cost', 'Cost', '', () => costs(run)],
    ['About', 'about', 'What to know before quoting a number', '', () => footer(run)],
  ];
  const nav = h('nav', { class: 'jump', 'aria-label': 'Sections' });
  const main = h('main', {}, verdict(run));
  const add = (some: Section[]): void => {
    for (const [name, id, title, sub, body] of some) {
      const element = section(id, title, sub, body());
      if (!element) continue;
      main.append(element);
      nav.append(h('a', { href: `#${id}` }, name));
    }
  };
  // What one reads first is painted first; the rest follows in the next frame.
  add(sections.slice(0, 2));
  app.replaceChildren(header(run), nav, main, h('footer', {}, `danki ${run.page.manifest.danki} · this file is complete: it asks no other address for anything`));
  requestAnimationFrame(() => setTimeout(() => {
    add(sections.slice(2));
    document.documentElement.dataset.ready = 'true';
    if (location.hash.startsWith('#i=')) open(location.hash.slice(3));
  }));
}

unpack(document.getElementById('data')!.textContent ?? '')
  .then((page) => show(prepare(page)))
  .catch((error: unknown) => {
    document.getElementById('app')!.textContent = `This report cannot be read: ${String(error)}`;
  });
