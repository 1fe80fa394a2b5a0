import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Debounce } from '../../src/debounce.ts';

void test('what comes close together is one, and each thing once', async () => {
  const acted: string[][] = [];
  const debounce = new Debounce<string>(
    () => 20,
    (items) => acted.push(items),
  );
  ['a', 'b', 'a'].forEach((item) => debounce.add(item));
  assert.deepEqual(acted, []);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(acted, [['a', 'b']]);
  debounce.add('c');
  debounce.dispose();
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(acted.length, 1);
});
