// The dashboard of a running `danki up`, as a person meets it.

import AxeBuilder from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DANKI = process.env.DANKI ?? fileURLToPath(new URL('../../target/release/danki', import.meta.url));
/** From the end of an invocation to its row: what a person calls at once, on a machine that is busy with tests. */
const ROW_MS = 5_000;

const TEMPLATE = `
Transform: AWS::Serverless-2016-10-31
Globals: { Function: { Runtime: nodejs20.x, Timeout: 10, MemorySize: 512 } }
Resources:
  Hello:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: hello
      Handler: index.handler
      InlineCode: |
        exports.handler = async (event) => { if (event.fail) throw new TypeError('<b>no</b>'); return 'hello'; };
`;

// A busy machine takes its time with envs and with axe.
test.setTimeout(90_000);

let danki: ChildProcess, address = '', dir = '', told = '';

test.beforeAll(async () => {
  const doctor = spawnSync(DANKI, ['doctor']);
  test.skip(doctor.status !== 0, `danki cannot run functions here: ${doctor.stdout ?? `${DANKI} is missing`}`);
  dir = mkdtempSync(join(tmpdir(), 'danki-live-'));
  writeFileSync(join(dir, 'template.yaml'), TEMPLATE);
  danki = spawn(DANKI, ['up', join(dir, 'template.yaml'), '--port', '0', '--http-port', '0', '--https-port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  danki.stdout!.on('data', (text) => (told += text));
  danki.stderr!.on('data', (text) => (told += text));
  await expect.poll(() => /Lambda at (http:\S+)/.exec(told)?.[1] ?? '', { timeout: 20_000 }).not.toBe('');
  address = /Lambda at (http:\S+)/.exec(told)![1];
  await expect.poll(async () => (await fetch(`${address}/2015-03-31/functions/hello`)).status, { timeout: 20_000 }).toBe(200);
});

test.afterAll(async () => {
  if (danki?.exitCode === null) {
    danki.kill('SIGINT');
    await once(danki, 'exit');
  }
  if (dir) rmSync(dir, { recursive: true });
});

/** Invokes, and gives the request id. */
async function invoke(payload: object): Promise<string> {
  const answer = await fetch(`${address}/2015-03-31/functions/hello/invocations`, { method: 'POST', body: JSON.stringify(payload) });
  expect(answer.status).toBe(200);
  await answer.text();
  return answer.headers.get('x-amzn-requestid')!;
}

/** Status of a request with headers that a browser would set for a page of its own. */
function get(path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(address + path, { headers }, (answer) => { answer.destroy(); resolve(answer.statusCode!); });
    sent.on('error', reject);
    sent.end();
  });
}

test('functions, envs and invocations appear as they are, and open', async ({ page }) => {
  const said: string[] = [];
  page.on('console', (message) => message.type() === 'error' && said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('request', (asked) => asked.url().startsWith(address) || asked.url().startsWith('data:') || said.push(`asked for ${asked.url()}`));
  await page.goto(`${address}/_danki/ui`);
  await expect(page.getByRole('status')).toHaveText('live');
  const row = page.locator('tr[data-function=hello]');
  await expect(row).toContainText('nodejs20.x');

  const first = await invoke({});
  await expect(page.locator(`button[data-id="${first}"]`)).toBeVisible({ timeout: ROW_MS });
  await expect(page.locator('#invocations tbody tr').first()).toContainText('cold');
  await expect(page.locator('.env[data-state=frozen]')).toContainText('hello');

  const failed = await invoke({ fail: true });
  await expect(page.locator(`button[data-id="${failed}"]`)).toBeVisible({ timeout: ROW_MS });
  await expect(page.locator('#invocations tbody tr').first()).toContainText('Runtime.Unknown');
  await page.getByLabel('Filter by id, function or status').fill('runtime.unknown');
  await expect(page.locator('#invocations tbody').first().locator('tr')).toHaveCount(1);
  await page.getByLabel('Filter by id, function or status').fill('');

  await page.locator(`button[data-id="${first}"]`).click();
  const detail = page.locator('#detail');
  await expect(detail.getByRole('heading')).toHaveText(`Invocation ${first}`);
  // The parts sum to the span.
  const cells = await detail.locator('table.parts tbody tr').evaluateAll((rows) => rows.map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent ?? '')));
  const ms = (text: string): number => Number(text.replace(/[, ms]/g, ''));
  const sum = cells.slice(0, -1).reduce((total, part) => total + ms(part[1]), 0);
  expect(cells.length).toBeGreaterThan(2);
  expect(Math.abs(sum / ms(cells[cells.length - 1][1]) - 1)).toBeLessThan(0.02);

  await expect(page.locator('#timeline canvas')).toBeVisible({ timeout: ROW_MS });
  await expect(page.locator('#parts .bar').first()).toBeVisible();
  await page.getByRole('button', { name: 'pause' }).click();
  const second = await invoke({});
  await page.getByRole('button', { name: 'go on' }).click();
  await expect(page.locator(`button[data-id="${second}"]`)).toBeVisible({ timeout: ROW_MS });
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
    expect(serious.map((v) => `${scheme} ${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')}`)).toEqual([]);
  }
  expect(said).toEqual([]);
});

test('no page of another origin gets anything', async () => {
  const port = new URL(address).port;
  for (const path of ['/_danki/ui', '/_danki/ui/events', '/_danki/ui/page']) {
    expect(await get(path, {})).toBe(200);
    expect(await get(path, { host: `localhost:${port}` })).toBe(200);
    expect(await get(path, { host: `attacker.example:${port}` })).toBe(403);
    expect(await get(path, { origin: 'https://attacker.example' })).toBe(403);
    expect(await get(path, { 'sec-fetch-site': 'cross-site' })).toBe(403);
  }
  const answer = await fetch(`${address}/_danki/ui/page`);
  expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  expect(await get('/_danki/ui/elsewhere', {})).toBe(404);
});

test('browsers that do not read hold nobody up, and there are only so many', async () => {
  const sockets: { destroy(): void }[] = [];
  const opened = await Promise.all(Array.from({ length: 12 }, () => new Promise<number>((resolve, reject) => {
    const sent = request(`${address}/_danki/ui/events`, { agent: false }, (answer) => { answer.pause(); sockets.push(answer); resolve(answer.statusCode!); });
    sent.on('error', reject);
    sent.end();
  })));
  expect(opened.filter((code) => code === 200).length).toBeLessThanOrEqual(8);
  expect(opened.filter((code) => code === 503).length).toBeGreaterThanOrEqual(4);
  await Promise.all(Array.from({ length: 20 }, () => invoke({})));
  sockets.forEach((socket) => socket.destroy());
  // Whoever has gone makes room.
  await expect.poll(() => get('/_danki/ui/events', {}), { timeout: 10_000 }).toBe(200);
});
