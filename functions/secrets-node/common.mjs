// One secret, `calls` times: the first is the miss, in ms by the function's own clock; the others are hits.
export const SECRET = process.env.SECRET_ID ?? 'prod/db';

export async function measure(get, event) {
  const calls = event.calls ?? 100;
  const took = [];
  let value;
  for (let call = 0; call < calls; call++) {
    const started = performance.now();
    value = await get(SECRET);
    took.push(performance.now() - started);
  }
  return { miss_ms: took[0], hit_ms: took.slice(1), length: value.length };
}
