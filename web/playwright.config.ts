import { defineConfig } from '@playwright/test';

// Debian's Chromium: nothing is downloaded. One worker: first paint is timed.
export default defineConfig({
  testDir: 'tests',
  workers: 1,
  retries: 0,
  timeout: 30_000,
  reporter: [['./tests/closing-line.ts']],
  use: {
    browserName: 'chromium',
    launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
  },
});
