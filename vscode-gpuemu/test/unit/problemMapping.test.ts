import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ProjectState } from '../../src/opState.ts';
import { problemsOf, type Problem } from '../../src/problemMapping.ts';
import type { CheckedConfig, OpReport } from '../../src/report.ts';
import { CONFIG, failedResult, LARGE_SEED, opReport, runReport } from './samples.ts';

function problems(op: OpReport, config: CheckedConfig = CONFIG): Problem[] {
  const state = new ProjectState();
  state.addRun(runReport([op]));
  return problemsOf(state.ops(), config);
}

void test('a failure is shown at the op in the configuration and at its source', () => {
  const [inConfig, inSource, ...more] = problems(opReport({ failures: [failedResult()] }));
  assert.equal(more.length, 0);
  assert.deepEqual(inConfig?.place, CONFIG.ops[0]?.place);
  assert.deepEqual(inSource?.place, CONFIG.ops[0]?.definition);
  assert.equal(inConfig?.severity, 'error');
  assert.equal(inConfig.failure?.seed, LARGE_SEED);
  assert.deepEqual(inConfig.message.split('\n'), [
    "softmax fails in float16: value: 5577 of 5577 elements of 'out' differ [normaliser]",
    `case: float16, input[3, 13, 143], contiguous, regular values, seed ${LARGE_SEED}`,
    'worst at [0, 10, 0]: 0.0675, expected 0.0554 (error 0.012, allowed 1e-4)',
    `replay: gpuemu reproduce ${LARGE_SEED} --op softmax`,
  ]);
  assert.deepEqual(inConfig.related.map(({ place }) => place.file), ['/project/kernels/softmax.py']);
  assert.deepEqual(inSource?.related.map(({ place }) => place.file), ['/project/gpuemu.toml']);
});

void test('failures that look alike are one problem, others are not', () => {
  const nan = failedResult().failures.map((finding) => ({ ...finding, check: 'unexpected_nan' }));
  const failures = [
    failedResult({ seed: '1' }),
    failedResult({ seed: '2' }),
    failedResult({ seed: '3', dtype: 'float32' }),
    failedResult({ seed: '4', failures: nan }),
  ];
  const shown = problems(opReport({ failures })).filter((problem) => problem.place.file.endsWith('.toml'));
  assert.deepEqual(shown.map((problem) => problem.failure?.seed), ['1', '3', '4']);
  assert.match(shown[0]?.message ?? '', /\n1 more case fails alike\n/);
});

void test('a smallest case is told with its passing neighbour', () => {
  const state = new ProjectState();
  const original = failedResult();
  const minimized = failedResult({ sizes: 'N=1 M=1 H=65', minimized: true });
  state.addMinimized({ original, minimized, neighbour: { dimension: 'H', fails: 65, passes: 64 }, runs: 9 });
  const message = problemsOf(state.ops(), CONFIG)[0]?.message ?? '';
  assert.match(message, /smallest failing case: float16, N=1 M=1 H=65 \(fails at H=65, passes at H=64\)/);
});

void test('warnings are warnings, and passes that prove little are told', () => {
  const shown = problems(opReport({ warnings: ['the largest error is 90 % of what is allowed'], weak: ['float16'] }));
  assert.deepEqual(shown.map((problem) => problem.severity), ['warning', 'warning']);
  assert.match(shown[0]?.message ?? '', /90 % of what is allowed/);
  assert.match(shown[1]?.message ?? '', /float16, but plainly wrong outputs would have passed/);
});

void test('what could not be judged is an error at the reference, where there is one', () => {
  const reference = { file: '/project/ref.py', range: { start: { line: 1, column: 1 }, end: { line: 1, column: 1 } } };
  const ops = CONFIG.ops.map((op) => ({ ...op, reference_definition: reference }));
  const [problem] = problems(opReport({ status: 'error', message: 'it crashed' }), { ...CONFIG, ops });
  assert.deepEqual([problem?.severity, problem?.place.file], ['error', '/project/ref.py']);
  assert.match(problem?.message ?? '', /could not be judged: it crashed/);
});

void test('ops that pass, and ops that are gone, have no problems', () => {
  assert.deepEqual(problems(opReport()), []);
  assert.deepEqual(problems(opReport({ failures: [failedResult()] }), { ...CONFIG, ops: [] }), []);
});
