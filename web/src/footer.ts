// What the numbers hang on.

import { h } from './dom';
import { number } from './format';
import type { Run } from './model';

export function footer({ page }: Run): HTMLElement {
  const { manifest, summary } = page;
  const fact = (name: string, value: string): Node[] => [h('dt', {}, name), h('dd', {}, value)];
  const calibration = manifest.calibration;
  const capabilities = flat(manifest.capabilities).slice(0, 40);
  return h('div', {},
    summary.caveats.length ? h('ul', { class: 'plain' }, ...summary.caveats.map((c) => h('li', {}, c))) : h('p', {}, 'No caveats were recorded.'),
    h('div', { class: 'two', style: 'margin-top: 16px' },
      h('div', {}, h('h3', {}, 'Machine and calibration'), h('dl', { class: 'facts' },
        ...fact('CPU', `${manifest.machine.cpus} × ${manifest.machine.cpu_model || 'unknown'}`),
        ...fact('kernel', manifest.machine.kernel),
        ...fact('one core here', calibration.cpu_factor ? `${calibration.cpu_factor.toFixed(2)} Lambda vCPU` : 'never compared'),
        ...calibration.measurements.flatMap((m) => fact(m.workload, `${number(m.here_ms)} ms here, ${number(m.aws_ms)} ms on AWS (${m.source})`)),
        ...fact('seed', String(manifest.seed)), ...fact('danki', manifest.danki), ...fact('schema', String(manifest.schema)))),
      h('div', {}, h('h3', {}, 'Capabilities'), capabilities.length ? h('dl', { class: 'facts' }, ...capabilities.flatMap(([k, v]) => fact(k, v))) : h('p', { class: 'faint' }, 'not recorded'))),
    h('details', { style: 'margin-top: 14px' }, h('summary', {}, 'the experiment as it was run'),
      h('pre', { class: 'scroll', tabindex: 0 }, JSON.stringify(manifest.experiment, null, 2))));
}

function flat(value: unknown, prefix = ''): [string, string][] {
  if (value === null || typeof value !== 'object') return [[prefix || 'value', String(value)]];
  return Object.entries(value).flatMap(([k, v]) => flat(v, prefix ? `${prefix} ${k}` : k.replaceAll('_', ' ')));
}
