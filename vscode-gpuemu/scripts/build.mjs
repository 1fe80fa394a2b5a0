// Bundles the extension, or with --tests its tests, into dist.
import { readdirSync } from 'node:fs';

import { build } from 'esbuild';

const common = { bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'warning' };
const tests = (folder) => readdirSync(folder).filter((name) => name.endsWith('.test.ts')).map((name) => `${folder}/${name}`);

if (process.argv.includes('--tests')) {
  await build({ ...common, entryPoints: tests('test/unit'), outdir: 'dist/test/unit', sourcemap: 'inline' });
  await build({ ...common, entryPoints: tests('test/e2e'), outdir: 'dist/test/e2e', sourcemap: 'inline', packages: 'external' });
} else {
  await build({ ...common, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js', external: ['vscode'], minify: true });
}
