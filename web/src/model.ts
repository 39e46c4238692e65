// The run, unpacked: columns become arrays with absolute times.

import type { Page } from './schema';

export interface Run {
  page: Page;
  /** Dispatch of each invocation, µs since the run's start. */
  dispatched: Float64Array;
  /** SYN of each connection, µs since the run's start. */
  syn: Float64Array;
  /** Rows of calls per invocation row. */
  callsOf: Map<number, number[]>;
  /** Row of a request id. */
  rowOf: Map<string, number>;
  /** Row of a connection id. */
  connOf: Map<number, number>;
  /** End of the run, µs. */
  end: number;
}

const running = (deltas: number[]): Float64Array => {
  const out = new Float64Array(deltas.length);
  let at = 0;
  deltas.forEach((d, n) => (out[n] = at += d));
  return out;
};

/** base64 → inflate → JSON. */
export async function unpack(text: string): Promise<Page> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) bytes[n] = binary.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text()) as Page;
}

export function prepare(page: Page): Run {
  const { invocations, calls, connections } = page;
  PART_VARS.splice(0, PART_VARS.length, ...page.parts.map((name) => COLORS[name] ?? '--rest'));
  const dispatched = running(invocations.dispatched_delta);
  const syn = running(connections.syn_delta);
  const callsOf = new Map<number, number[]>();
  calls.invocation.forEach((row, call) => {
    const list = callsOf.get(row);
    if (list) list.push(call);
    else callsOf.set(row, [call]);
  });
  const ends = invocations.span.map((span, n) => dispatched[n] + span + invocations.after[n]);
  const closes = connections.closed.map((c, n) => syn[n] + Math.max(c, 0));
  const end = Math.max(1, ...chunkMax(ends), ...chunkMax(closes), ...page.envs.map((e) => e.ended));
  return {
    page,
    dispatched,
    syn,
    callsOf,
    rowOf: new Map(invocations.id.map((id, row) => [id, row])),
    connOf: new Map(connections.conn.map((conn, row) => [conn, row])),
    end,
  };
}

/** Largest values by chunk: spreading a hundred thousand arguments would overflow the stack. */
function chunkMax(values: number[]): number[] {
  const out: number[] = [];
  for (let at = 0; at < values.length; at += 1000) out.push(Math.max(...values.slice(at, at + 1000)));
  return out;
}

export const STARTS = ['cold', 'warm', 'suppressed'];
export const CLOSED_BY = ['open', 'client', 'endpoint', 'client (reset)', 'endpoint (reset)'];

/** Colours of parts, as browsers' developer tools have them. */
const COLORS: Record<string, string> = {
  'env wait': '--wait', init: '--init', thaw: '--thaw', 'cpu on': '--cpu', 'cpu throttled': '--throttled', dns: '--dns', 'tcp connect': '--tcp',
  tls: '--tls', 'request on the wire': '--wire', 'service time': '--service', 'cpu wait': '--machine', unattributed: '--rest',
};

/** Colour variables in the order of `Page.parts`; filled when the page is read. */
export const PART_VARS: string[] = [];

export const VARIANT_VARS = ['--v0', '--v1', '--v2', '--v3', '--v4', '--v5', '--v6', '--v7'];
export const variantVar = (n: number): string => VARIANT_VARS[((n % 8) + 8) % 8];
