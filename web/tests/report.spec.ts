// The page as a person meets it. The reports are written by `cargo test -p danki-runview` into target/tmp.

import AxeBuilder from '@axe-core/playwright';
import { expect, test, type Page } from '@playwright/test';
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

const FIRST_PAINT_MS = 1000;

async function open(page: Page, name: string): Promise<string[]> {
  const path = fileURLToPath(new URL(`../../target/tmp/${name}`, import.meta.url));
  if (!existsSync(path)) throw new Error(`${path} is missing\nhint: cargo test --release -p danki-runview`);
  const said: string[] = [];
  page.on('console', (message) => message.type() === 'error' && said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  // A page that asks for anything else is not self-contained.
  page.on('request', (request) => request.url().startsWith('file:') || request.url().startsWith('blob:') || said.push(`asked for ${request.url()}`));
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector('html[data-ready]');
  return said;
}

test('open, filter, click an invocation, read its parts', async ({ page }) => {
  const said = await open(page, 'report-300.html');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('made-by-hand');
  await expect(page.locator('.finding.problem h3').first()).toBeVisible();

  await page.getByLabel('Variant', { exact: true }).selectOption({ label: 'on' });
  await expect(page.locator('#invocations [aria-live=polite]')).toHaveText('150 of 300');
  await page.getByLabel('Kind', { exact: true }).selectOption({ label: 'failed' });
  const failed = await page.locator('#invocations tbody').first().locator('tr').count();
  expect(failed).toBe(1);
  await page.getByLabel('Kind', { exact: true }).selectOption({ label: 'all' });

  await page.locator('#invocations button[data-id]').nth(3).click();
  const detail = page.locator('#detail');
  await expect(detail.getByRole('heading')).toContainText('Invocation');
  // The parts of the table sum to the span that the row shows.
  const cells = await detail.locator('table.parts tbody tr').evaluateAll((rows) => rows.map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent ?? '')));
  const ms = (text: string): number => Number(text.replace(/[, ms]/g, ''));
  const sum = cells.slice(0, -1).reduce((total, row) => total + ms(row[1]), 0);
  expect(Math.abs(sum - ms(cells[cells.length - 1][1]))).toBeLessThan(0.15);
  await expect(detail.locator('svg[role=img]')).toBeVisible();
  await detail.getByRole('button', { name: 'close' }).click();
  await expect(detail).toBeEmpty();
  expect(said).toEqual([]);
});

test('a finding leads to its invocation, the timeline too, and charts follow their controls', async ({ page }) => {
  const said = await open(page, 'report-300.html');
  const example = page.locator('.finding button.link').first();
  const id = (await example.getAttribute('aria-label'))!.replace('open invocation ', '');
  await example.click();
  await expect(page.locator('#detail h3')).toHaveText(`Invocation ${id}`);

  const canvas = page.locator('canvas.timeline');
  await canvas.scrollIntoViewIfNeeded();
  await page.getByRole('button', { name: 'zoom in' }).click();
  await canvas.focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('0');
  const box = (await canvas.boundingBox())!;
  await canvas.click({ position: { x: 100, y: 34 } });
  expect(box.width).toBeGreaterThan(300);

  const histogram = page.locator('.chart [role=img]').first();
  await histogram.scrollIntoViewIfNeeded();
  await expect(histogram).toHaveAttribute('aria-label', /off: 150 values/);
  await page.getByLabel('without the slowest 5 %').check();
  await expect(histogram).toHaveAttribute('aria-label', /off: 142 values/);
  expect(said).toEqual([]);
});

test('a filter expression says what the charts show, and the service map who calls whom', async ({ page }) => {
  const said = await open(page, 'report-300.html');
  const histogram = page.locator('.chart [role=img]').first();
  await histogram.scrollIntoViewIfNeeded();
  await expect(histogram).toHaveAttribute('aria-label', /off: 150 values/);
  const expression = page.getByLabel("Filter expression, as X-Ray's");
  const answer = page.locator('#filter-said');
  const ask = async (text: string, expected: string | RegExp): Promise<void> => {
    await expression.fill(text);
    await expression.press('Enter');
    await expect(answer).toHaveText(expected);
  };
  await ask('responsetime <= 0.03', '150 of 300 invocations');
  await expect(histogram).not.toHaveAttribute('aria-label', /off:/);
  await ask('responsetime > 0.03 AND NOT (fault OR throttle)', /^14\d of 300 invocations$/);
  await ask('fault', '3 of 300 invocations');
  await ask('service("dynamodb") AND http.status = 200', '300 of 300 invocations');
  await ask('service("s3")', '0 of 300 invocations');
  await ask('responsetime <', 'expected a number at the end');
  await expect(expression).toHaveAttribute('aria-invalid', 'true');
  await ask('cold = true', /expected a keyword/);
  await ask('', '');
  await expect(histogram).toHaveAttribute('aria-label', /off: 150 values/);

  await expect(page.locator('#services svg[role=img]')).toHaveAttribute('aria-label', /on calls dynamodb GetItem: 150 calls/);
  await expect(page.locator('#services tbody tr')).toHaveCount(2);
  expect(said).toEqual([]);
});

for (const scheme of ['light', 'dark'] as const) {
  test(`axe finds nothing serious (${scheme})`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await open(page, 'report-300.html');
    await page.locator('#invocations button[data-id]').first().click();
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
    expect(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')}`)).toEqual([]);
  });
}

test('ten thousand invocations are on the screen within a second', async ({ page }) => {
  const said = await open(page, 'report-10000.html');
  const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
  await expect(page.locator('#invocations [aria-live=polite]')).toHaveText('10000 of 10000');
  const whole = await page.evaluate(() => performance.now());
  console.log(`first paint (verdict, findings, variants) after ${painted.toFixed(0)} ms, everything by ${whole.toFixed(0)} ms`);
  expect(painted).toBeLessThan(FIRST_PAINT_MS);
  expect(said).toEqual([]);
});

test('it prints', async ({ page }) => {
  await open(page, 'report-300.html');
  await page.emulateMedia({ media: 'print' });
  await expect(page.locator('nav.jump')).toBeHidden();
  const pdf = await page.pdf({ format: 'A4' });
  expect(pdf.length).toBeGreaterThan(20_000);
});
