import assert from 'node:assert/strict';
import { test } from 'node:test';

import { relocated } from '../../src/relocation.ts';

void test('paths below a folder are moved, and nothing else', () => {
  const value = { file: '/real/p/a.py', files: ['/real/p', '/real/pq/b.py', '/real/p/c.py'], line: 3, none: null };
  assert.deepEqual(relocated(value, '/real/p', '/link'), {
    file: '/link/a.py',
    files: ['/real/p', '/real/pq/b.py', '/link/c.py'],
    line: 3,
    none: null,
  });
  assert.equal(relocated(value, '/real', '/real'), value);
});
