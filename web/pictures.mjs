// The pictures of docs/pictures, from a run's report.html: node pictures.mjs ../runs/…-keepalive-node/report.html; from a running dashboard
// whose functions have been invoked: node pictures.mjs http://127.0.0.1:9001/_danki/ui
import { chromium } from '@playwright/test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const live = process.argv[2].startsWith('http:');
const page = live ? process.argv[2] : pathToFileURL(resolve(process.argv[2])).href;
const out = (name) => fileURLToPath(new URL(`../docs/pictures/${name}.png`, import.meta.url));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const pictures = live ? [['dashboard', 'light', 'header.top', 1000, '#invocations [data-id] >> nth=0']] : [
  ['findings', 'light', 'header.top', 1000, ''],
  ['variants', 'dark', '#variants', 900, ''],
  ['invocation', 'light', '#detail', 700, '#invocations [data-id] >> nth=3'],
];
for (const [name, scheme, at, height, click] of pictures) {
  const tab = await browser.newPage({ viewport: { width: 1280, height }, colorScheme: scheme });
  await tab.goto(page);
  await tab.waitForSelector('html[data-ready]');
  await tab.addStyleTag({ content: 'html { scroll-behavior: auto !important }' });
  if (click) await tab.click(click);
  await tab.evaluate((selector) => document.querySelector(selector).scrollIntoView(), at);
  await tab.waitForTimeout(live ? 3000 : 400);
  await tab.screenshot({ path: out(name) });
}
await browser.close();
