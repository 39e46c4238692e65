// One secret, `calls` times; what it cost is in the answer.
export const SECRET = process.env.SECRET_ID ?? 'prod/db';

export async function measure(get, event) {
  const calls = event.calls ?? 100;
  const started = performance.now();
  let value;
  for (let call = 0; call < calls; call++) value = await get(SECRET);
  return { calls, ms: performance.now() - started, length: value.length };
}
