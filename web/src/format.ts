// Numbers as people read them: about three significant digits, with their unit.

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 || size === 0 ? 2 : size >= 0.01 ? 3 : 5;
  const [whole, rest] = value.toFixed(digits).split('.');
  const grouped = whole.replace(/^-?\d+$/, (w) => (w.length > 4 ? w.replace(/\B(?=(\d{3})+$)/g, ',') : w));
  return rest ? `${grouped}.${rest}` : grouped;
}

/** µs → ms. */
export const ms = (us: number): string => `${number(us / 1000)} ms`;

export const percent = (share: number): string => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;

export const usd = (value: number): string => `$${value.toFixed(Math.abs(value) < 0.1 ? 3 : 2)}`;

/** µs on an axis, in the unit that fits. */
export function span(us: number): string {
  if (us === 0) return '0';
  if (us >= 60e6) return `${number(us / 60e6)} min`;
  if (us >= 1e6) return `${number(us / 1e6)} s`;
  if (us >= 1e3) return `${number(us / 1e3)} ms`;
  return `${number(us)} µs`;
}

/** Round steps for about `count` ticks. */
export function ticks(from: number, to: number, count: number): number[] {
  const raw = Math.max((to - from) / Math.max(count, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw) ?? raw;
  const out: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to && out.length < 100; t += step) out.push(t);
  return out;
}
