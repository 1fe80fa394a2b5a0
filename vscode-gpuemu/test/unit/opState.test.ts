import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ProjectState } from '../../src/opState.ts';
import { failedResult, opReport, runReport } from './samples.ts';

const seeds = (state: ProjectState): string[] => state.op('softmax').failures.map((failure) => failure.result.seed);

void test('a thorough run that passes clears what failed', () => {
  const state = new ProjectState();
  state.addRun(runReport([opReport({ failures: [failedResult({ seed: '1' }), failedResult({ seed: '2' })] })]));
  assert.deepEqual(seeds(state), ['1', '2']);
  state.addRun(runReport([opReport()]));
  assert.deepEqual(seeds(state), []);
});

void test('a run that fails clears nothing of the dtypes that fail', () => {
  const state = new ProjectState();
  state.addRun(runReport([opReport({ failures: [failedResult({ seed: '1' }), failedResult({ seed: '2', dtype: 'float32' })] })]));
  state.addRun(runReport([opReport({ failures: [failedResult({ seed: '3' })] })]));
  assert.deepEqual(seeds(state), ['1', '3']);
});

void test('a failure is mended only if it passed again or its dtype is clean', () => {
  const state = new ProjectState();
  const [first, second] = [failedResult({ seed: '1' }), failedResult({ seed: '2' })];
  assert.equal(state.standing(first), 'unknown');
  state.addResult(first);
  assert.equal(state.standing(first), 'open');
  state.addResult({ ...first, outcome: 'passed' });
  assert.deepEqual([state.standing(first), state.standing(second)], ['mended', 'unknown']);
  state.addRun(runReport([opReport()]));
  assert.equal(state.standing(second), 'mended');
  state.addResult(first);
  assert.deepEqual([state.standing(first), state.standing(second)], ['open', 'unknown']);
});

void test('a quick run clears nothing by itself: few cases prove little', () => {
  const state = new ProjectState();
  state.addRun(runReport([opReport({ failures: [failedResult({ seed: '1' })] })]));
  state.addRun(runReport([opReport()], 'quick'));
  assert.deepEqual(seeds(state), ['1']);
  state.addReplayed([{ status: 'FIXED', result: failedResult({ seed: '1', outcome: 'passed' }) }]);
  assert.deepEqual(seeds(state), []);
});

void test('dtypes that a run left out stay as they were', () => {
  const state = new ProjectState();
  state.addRun(runReport([opReport({ failures: [failedResult({ seed: '1', dtype: 'float16' })] })]));
  const float32 = opReport().dtypes.filter((counts) => counts.dtype === 'float32');
  state.addRun(runReport([opReport({ dtypes: float32 })]));
  assert.deepEqual(seeds(state), ['1']);
  assert.equal(state.op('softmax').dtypes.get('float16')?.failed, 1);
});

void test('a run that could not judge clears nothing', () => {
  const state = new ProjectState();
  state.addRun(runReport([opReport({ failures: [failedResult({ seed: '1' })] })]));
  state.addRun(runReport([opReport({ status: 'error' })]));
  state.addRun(runReport([opReport({ status: 'unfinished' })]));
  assert.deepEqual(seeds(state), ['1']);
});

void test('failures that are expected are not open', () => {
  const state = new ProjectState();
  state.addRun(runReport([opReport({ status: 'expected_failure', failures: [failedResult()] })]));
  assert.deepEqual(seeds(state), []);
});

void test('a case that is reproduced is cleared if it passes and updated if it fails', () => {
  const state = new ProjectState();
  state.addResult(failedResult({ seed: '1' }));
  state.addResult(failedResult({ seed: '1', tolerance: 'fixed' }));
  assert.deepEqual(state.op('softmax').failures.map((failure) => failure.result.tolerance), ['fixed']);
  state.addResult(failedResult({ seed: '1', outcome: 'undetermined' }));
  assert.deepEqual(seeds(state), ['1']);
  state.addResult(failedResult({ seed: '1', outcome: 'passed' }));
  assert.deepEqual(seeds(state), []);
});

void test('the smallest form belongs to its failure', () => {
  const state = new ProjectState();
  const [original, minimized] = [failedResult({ seed: '1' }), failedResult({ seed: '1', sizes: 'H=65', minimized: true })];
  state.addMinimized({ original, minimized, neighbour: { dimension: 'H', fails: 65, passes: 64 }, runs: 30 });
  assert.equal(state.failure(original)?.smallest?.result.sizes, 'H=65');
  assert.equal(state.standing(minimized), 'open');
  assert.equal(state.failure(failedResult({ seed: '2' })), undefined);
});

void test('what is open and was not told of is known', () => {
  const state = new ProjectState();
  ['1', '2'].forEach((seed) => state.addResult(failedResult({ seed })));
  assert.deepEqual(state.beyond('softmax', [failedResult({ seed: '1' })]).map(({ seed }) => seed), ['2']);
});

void test('one seed stands for other cases in quick and in thorough runs', () => {
  const state = new ProjectState();
  state.addResult(failedResult({ seed: '1' }));
  state.addResult(failedResult({ seed: '1', settings: { quick: true }, sizes: 'H=17' }));
  assert.deepEqual(seeds(state), ['1', '1']);
  state.addResult(failedResult({ seed: '1', outcome: 'passed', settings: { quick: true }, sizes: 'H=17' }));
  assert.equal(state.failure(failedResult({ seed: '1' }))?.result.sizes, 'N=3 M=13 H=143');
});

void test('ops that are gone are forgotten', () => {
  const state = new ProjectState();
  state.addResult(failedResult());
  state.keepOnly(['relu']);
  assert.deepEqual(state.ops(), []);
});

void test('a case that could not be judged does not make its dtype pass', () => {
  const state = new ProjectState();
  const failed = failedResult({ seed: '1' });
  const after = (results: ReturnType<typeof failedResult>[]): string => {
    results.forEach((result) => state.addResult(result));
    return state.afterCases('softmax', 'float16', results);
  };
  assert.equal(after([failed]), 'failed');
  assert.equal(after([{ ...failed, outcome: 'passed' }]), 'passed');
  assert.equal(after([{ ...failed, outcome: 'undetermined' }]), 'unknown');
  assert.equal(after([{ ...failed, outcome: 'error' }, { ...failed, seed: '2', outcome: 'passed' }]), 'unknown');
});
