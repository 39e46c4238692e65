// X-Ray's filter expressions over a report's invocations: the grammar of crates/xray/src/filter, with the keywords that a page has facts for.

import type { Run } from './model';

export type Test = (row: number) => boolean;
type Token = { at: number; text: string };

const KEYWORDS = 'responsetime, duration, http.status, service("…"), ok, error, fault, throttle';
const MAX_DEPTH = 64;

class Bad extends Error {}

function tokens(text: string): Token[] {
  const out: Token[] = [];
  const pattern = /\s+|"(?:\\.|[^"\\])*"|<=|>=|!=|[()<>=!]|[\p{L}\p{N}._-]+/gsuy;
  while (pattern.lastIndex < text.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(text);
    if (!match) throw new Bad(`“${text.slice(at, at + 10)}” cannot be read`);
    if (match[0].trim()) out.push({ at, text: match[0] });
  }
  return out;
}

/** What an expression takes, or why it is none. Times are in seconds, as in X-Ray. */
export function filter(run: Run, text: string): Test | string {
  const { page, callsOf } = run;
  const i = page.invocations, c = page.calls;
  try {
    const all = tokens(text);
    if (!all.length) return () => true;
    let at = 0, depth = 0;
    const next = (): string => all[at]?.text ?? '';
    const is = (word: string): boolean => { const there = next().toUpperCase() === word; if (there) at++; return there; };
    const need = (what: string): never => { throw new Bad(`expected ${what}${next() ? ` at “${next()}”` : ' at the end'}`); };
    const calls = (row: number): number[] => callsOf.get(row) ?? [];
    const status = (of: (n: number) => boolean): Test => (row) => calls(row).some((call) => of(c.status[call]));
    const flags: Record<string, Test> = {
      OK: (row) => i.failure[row] < 0 && calls(row).every((call) => c.status[call] > 0 && c.status[call] < 400),
      ERROR: status((n) => n >= 400 && n < 500),
      FAULT: (row) => i.failure[row] >= 0 || calls(row).some((call) => c.status[call] === 0 || c.status[call] >= 500),
      THROTTLE: status((n) => n === 429),
    };
    const numbers: Record<string, (row: number) => number[]> = {
      RESPONSETIME: (row) => [i.span[row] / 1e6],
      DURATION: (row) => [(i.span[row] + i.after[row]) / 1e6],
      'HTTP.STATUS': (row) => calls(row).map((call) => c.status[call]),
    };
    const compare: Record<string, (a: number, b: number) => boolean> = {
      '=': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b,
    };
    const keyword = (): Test => {
      const word = next().toUpperCase();
      at++;
      if (flags[word]) {
        const flag = flags[word];
        const negated = is('!=') ? true : is('=') ? false : null;
        if (negated === null) return flag;
        const truth = is('TRUE') ? true : is('FALSE') ? false : need('true or false');
        return truth === negated ? (row) => !flag(row) : flag;
      }
      if (numbers[word]) {
        const of = numbers[word], by = compare[next()] ?? need('=, !=, <, <=, > or >=');
        at++;
        const to = Number(next());
        if (!next() || !Number.isFinite(to)) need('a number');
        at++;
        return (row) => of(row).some((n) => by(n, to));
      }
      if (word === 'SERVICE') {
        if (!is('(')) need('a name in parentheses');
        if (!next().startsWith('"')) need('a name in double quotes');
        const name = next().slice(1, -1).replace(/\\(.)/gs, '$1');
        at++;
        if (!is(')')) need('a closing parenthesis');
        return (row) => page.summary.variants[i.variant[row]]?.name === name || calls(row).some((call) => { const called = c.names[c.name[call]]; return called === name || called.startsWith(`${name} `); });
      }
      at--;
      return need(`a keyword (${KEYWORDS})`);
    };
    const one = (): Test => {
      if (++depth > MAX_DEPTH) need('fewer parentheses');
      let test: Test;
      if (is('!') || is('NOT')) {
        const inner = one();
        test = (row) => !inner(row);
      } else if (is('(')) {
        test = either();
        if (!is(')')) need('a closing parenthesis');
      } else test = keyword();
      depth--;
      return test;
    };
    const both = (): Test => { let left = one(); while (is('AND')) { const a = left, b = one(); left = (row) => a(row) && b(row); } return left; };
    const either = (): Test => { let left = both(); while (is('OR')) { const a = left, b = both(); left = (row) => a(row) || b(row); } return left; };
    const test = either();
    if (at < all.length) need('AND, OR or the end');
    return test;
  } catch (error) {
    if (error instanceof Bad) return error.message;
    throw error;
  }
}
