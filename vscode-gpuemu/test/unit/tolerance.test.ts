import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseTolerance, roundedUp, suggestedTolerance } from '../../src/tolerance.ts';
import { failedResult } from './samples.ts';

void test('numbers are rounded up to two digits', () => {
  assert.deepEqual([0.0121, 0.999, 1, 1234, 5e-8, 0].map(roundedUp), [0.013, 1, 1, 1300, 5e-8, 0]);
});

void test('the suggestion lets the largest error pass and is never tighter than what is set', () => {
  const results = [failedResult(), failedResult({ max_abs_diff: 0.002 })];
  assert.deepEqual(suggestedTolerance(results), { atol: 0.013, rtol: 0 });
  assert.deepEqual(suggestedTolerance(results, { atol: 0.5, rtol: 1e-3 }), { atol: 0.5, rtol: 1e-3 });
});

void test('no tolerance is suggested where none would help', () => {
  const nan = failedResult().failures.map((finding) => ({ ...finding, check: 'unexpected_nan' }));
  assert.equal(suggestedTolerance([failedResult({ failures: nan })]), undefined);
  assert.equal(suggestedTolerance([failedResult({ max_abs_diff: 'Infinity' })]), undefined);
  assert.equal(suggestedTolerance([]), undefined);
});

void test('a pair is read as people type it', () => {
  assert.deepEqual(parseTolerance('atol = 1e-3, rtol=0'), { atol: 1e-3, rtol: 0 });
  assert.deepEqual(parseTolerance('0.5,1'), { atol: 0.5, rtol: 1 });
  for (const wrong of ['', '1', '1, x', '-1, 0', 'NaN, 1', '1, 2, 3']) {
    assert.equal(typeof parseTolerance(wrong), 'string', wrong);
  }
});
