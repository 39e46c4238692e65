// Builds each page into ONE html file: src/main.ts is a run's report, src/live.ts the dashboard of `danki up`. With --check it compares
// instead of writing: the committed files must be what this source builds.
import { build } from 'vite';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const pages = [
  ['src/main.ts', 'src/page.html', 'crates/runview/assets/report.html'],
  ['src/live.ts', 'src/live.html', 'crates/dashboard/assets/dashboard.html'],
];
// A closing tag inside a string would end the element.
const safe = (code) => code.replaceAll('</script', '<\\/script');

for (const [entry, frame, target] of pages) {
  const { output } = await build({
    configFile: false,
    root: here('.'),
    logLevel: 'warn',
    build: {
      write: false,
      target: 'es2022',
      modulePreload: false,
      rollupOptions: { input: here(entry), output: { format: 'iife' } },
    },
  });
  const script = output.filter((o) => o.type === 'chunk').map((o) => o.code).join('\n');
  const style = output.filter((o) => o.type === 'asset' && o.fileName.endsWith('.css')).map((o) => o.source).join('\n');
  const page = readFileSync(here(frame), 'utf8')
    .replace('/*STYLE*/', () => style.trim())
    .replace('/*SCRIPT*/', () => safe(script.trim()));
  const path = here(`../${target}`);
  if (!process.argv.includes('--check')) {
    writeFileSync(path, page);
    console.log(`${target}: ${(page.length / 1024).toFixed(1)} KiB`);
  } else if (readFileSync(path, 'utf8') === page) {
    console.log(`${target} is what web/ builds`);
  } else {
    console.error(`${target} is not what web/ builds\nhint: cd web && npm ci && npm run build`);
    process.exit(1);
  }
}
