// The README of the package: pictures in it would have to come from a public address, so it goes without them.
import { readFileSync, writeFileSync } from 'node:fs';

const text = readFileSync('README.md', 'utf8');
writeFileSync('dist/README.md', text.replace(/^!\[[^\]]*\]\([^)]*\)\n\n/gm, ''));
