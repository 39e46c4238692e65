// Screenshots of a report: node shot.mjs report.html out.png [light|dark] [width] [selector to click] — pictures for docs/.
import { chromium } from '@playwright/test';
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const [, , page, out, scheme = 'light', width = '1280', click = ''] = process.argv;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const tab = await browser.newPage({ viewport: { width: Number(width), height: 900 }, colorScheme: scheme, deviceScaleFactor: 1 });
await tab.goto(pathToFileURL(resolve(page)).href);
await tab.waitForSelector('html[data-ready]');
if (click) await tab.click(click);
await tab.addStyleTag({ content: 'html { scroll-behavior: auto !important }' });
await tab.evaluate(async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 600) { scrollTo(0, y); await new Promise((r) => setTimeout(r, 60)); }
  scrollTo(0, 0);
});
await tab.screenshot({ path: out, fullPage: true });
await browser.close();
