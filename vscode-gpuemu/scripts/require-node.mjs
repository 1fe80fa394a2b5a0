// Says which Node.js the tests need, in place of the error that an older one ends with.

import { readFileSync } from 'node:fs';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const needed = Number(/\d+/.exec(engines.node)[0]);
const [found] = process.versions.node.split('.').map(Number);
if (found < needed) {
  console.error(
    `the tests need Node.js ${needed} or newer, and this is ${process.version}: install one, or run ` +
      '`cargo xtask test --only extension`, which brings its own',
  );
  process.exit(1);
}
