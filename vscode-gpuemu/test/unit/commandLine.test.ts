import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as commandLine from '../../src/commandLine.ts';
import { failedResult, LARGE_SEED } from './samples.ts';

void test('a seed above 2^63 reaches the command line unchanged', () => {
  const result = failedResult();
  assert.deepEqual(commandLine.reproduce(result), ['reproduce', LARGE_SEED, '--format', 'json', '--op', 'softmax']);
  assert.equal(commandLine.minimize(result)[1], LARGE_SEED);
  assert.equal(commandLine.picture(result)[1], LARGE_SEED);
});

void test('what is no seed never reaches a command line', () => {
  for (const seed of ['', '-1', '1e3', '18446744073709551616', '1; rm -rf', 7 as unknown as string]) {
    assert.throws(() => commandLine.reproduce(failedResult({ seed })), /not a seed/);
  }
});

void test('a case of a quick run is drawn again by a quick run', () => {
  assert.ok(commandLine.reproduce(failedResult({ settings: { quick: true } })).includes('--quick'));
  assert.ok(commandLine.minimize(failedResult({ settings: { quick: true } })).includes('--quick'));
  // What was minimised is stored as it is.
  const minimized = commandLine.reproduce(failedResult({ settings: { quick: true }, minimized: true }));
  assert.deepEqual(minimized.slice(-1), ['--minimized']);
});

void test('ops and dtypes are named', () => {
  const words = commandLine.test({ ops: ['a', 'b'], dtypes: ['float16', 'float32'], quick: true });
  assert.deepEqual(words, ['test', '--format', 'json', '--quick', '--op', 'a', '--op', 'b', '--dtypes', 'float16,float32']);
  assert.deepEqual(commandLine.test({}), ['test', '--format', 'json']);
});

void test('a negative tolerance is no option', () => {
  assert.ok(commandLine.setTolerance('a', 'float32', '-1', '0').includes('--atol=-1'));
});

void test('a line is split into words as a shell does', () => {
  assert.deepEqual(commandLine.words(`--grid 8  --arg 'f32:my file.npy' "" a"b"c`), [
    '--grid',
    '8',
    '--arg',
    'f32:my file.npy',
    '',
    'abc',
  ]);
  assert.throws(() => commandLine.words("'open"), /not closed/);
});
