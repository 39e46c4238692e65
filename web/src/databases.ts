// Connections at databases over time.

import { h, s } from './dom';
import { span } from './format';
import { variantVar, type Run } from './model';

export function databases({ page, end }: Run): HTMLElement | null {
  const all = page.databases.filter((d) => d.open.length);
  if (!all.length) return null;
  const most = Math.max(...all.flatMap((d) => d.open.filter((_, n) => n % 2 === 1)), 1);
  const x = (us: number): number => (us / end) * 1000;
  const y = (n: number): number => 180 - (n / most) * 160;
  const lines = all.map((d, v) => {
    let path = `M 0 ${y(0)}`;
    for (let at = 0; at < d.open.length; at += 2) path += ` H ${x(d.open[at])} V ${y(d.open[at + 1])}`;
    return s('path', { d: `${path} H 1000`, fill: 'none', stroke: `var(${variantVar(v)})`, 'stroke-width': 2, 'vector-effect': 'non-scaling-stroke' });
  });
  return h('div', { class: 'detail', style: 'border: 0; margin: 0; padding: 0' },
    s('svg', { viewBox: '0 0 1000 200', role: 'img', 'aria-label': `Open database connections over ${span(end)}, at most ${most}` }, ...lines,
      s('text', { x: 4, y: 14, class: 'axis' }, `${most} open`)),
    h('div', { class: 'legend' }, ...all.map((d, v) => h('span', {}, h('span', { class: 'dot', style: `background: var(${variantVar(v)})` }), d.name))));
}
