import { createHash } from 'node:crypto';

export const handler = async ({ iterations = 500_000 }) => {
  let data = Buffer.from('danki');
  for (let i = 0; i < iterations; i++) {
    data = createHash('sha256').update(data).digest();
  }
  return { iterations, digest: data.toString('hex') };
};
