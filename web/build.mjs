// Builds src/main.ts into ONE html file, crates/runview/assets/report.html. With --check it compares instead of writing: the committed
// file must be what this source builds.
import { build } from 'vite';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const target = here('../crates/runview/assets/report.html');

const { output } = await build({
  configFile: false,
  root: here('.'),
  logLevel: 'warn',
  build: {
    write: false,
    target: 'es2022',
    modulePreload: false,
    rollupOptions: { input: here('src/main.ts'), output: { format: 'iife' } },
  },
});
const script = output.filter((o) => o.type === 'chunk').map((o) => o.code).join('\n');
const style = output.filter((o) => o.type === 'asset' && o.fileName.endsWith('.css')).map((o) => o.source).join('\n');
// A closing tag inside a string would end the element.
const safe = (code) => code.replaceAll('</script', '<\\/script');
const page = readFileSync(here('src/page.html'), 'utf8')
  .replace('/*STYLE*/', () => style.trim())
  .replace('/*SCRIPT*/', () => safe(script.trim()));

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== page) {
    console.error('crates/runview/assets/report.html is not what web/ builds\nhint: cd web && npm ci && npm run build');
    process.exit(1);
  }
  console.log('crates/runview/assets/report.html is what web/ builds');
} else {
  writeFileSync(target, page);
  console.log(`crates/runview/assets/report.html: ${(page.length / 1024).toFixed(1)} KiB`);
}
