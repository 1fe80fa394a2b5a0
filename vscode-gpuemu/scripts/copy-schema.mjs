// The extension carries a copy of the configuration's JSON Schema. With --check the copy must be up to date.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const original = new URL('../../docs/reference/gpuemu.schema.json', import.meta.url);
const copy = new URL('../schemas/gpuemu.schema.json', import.meta.url);

// Outside of the repository there is only the copy.
if (existsSync(original)) {
  const text = readFileSync(original, 'utf8');
  if (!process.argv.includes('--check')) {
    writeFileSync(copy, text);
  } else if (readFileSync(copy, 'utf8') !== text) {
    console.error('schemas/gpuemu.schema.json differs from docs/reference/gpuemu.schema.json: run `npm run schema`');
    process.exitCode = 1;
  }
}
