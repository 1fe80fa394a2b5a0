import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asMinimized, asReplayed, asResult, asRunReport, seedText } from '../../src/report.ts';
import { failedResult, LARGE_SEED, opReport, runReport } from './samples.ts';

const travelled = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;

void test('seeds stay texts', () => {
  const report = asRunReport(travelled(runReport([opReport({ failures: [failedResult()] })])));
  assert.equal(report.ops[0]?.failures[0]?.seed, LARGE_SEED);
  assert.equal(seedText('18446744073709551615'), '18446744073709551615');
});

void test('a seed that became a number is refused: it may be another one', () => {
  assert.throws(() => asResult(travelled(failedResult({ seed: 2 ** 53 as unknown as string }))), /not a seed/);
});

void test('answers of another form are refused by name', () => {
  assert.throws(() => asRunReport({ version: 2, ops: [] }), /not a report of version 1/);
  assert.throws(() => asRunReport({ version: 1, ops: [{ op: 'a' }] }), /not a report of version 1/);
  assert.throws(() => asResult(null), /not a verdict/);
  assert.throws(() => asReplayed([{ status: 'FIXED', result: {} }]), /not a verdict/);
  assert.throws(() => asMinimized({ original: failedResult() }), /not a verdict/);
});
