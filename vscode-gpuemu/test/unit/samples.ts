// Answers of gpuemu in short, for tests of what is made of them.

import type { CheckedConfig, OpReport, RunReport, ValidationResult } from '../../src/report.ts';

/** A seed that no JavaScript number holds. */
export const LARGE_SEED = '18446744073709551557';

export function failedResult(changes: Partial<ValidationResult> = {}): ValidationResult {
  return {
    op: 'softmax',
    outcome: 'failed',
    passed: false,
    seed: LARGE_SEED,
    dtype: 'float16',
    sizes: 'N=3 M=13 H=143',
    shapes: [['input', [3, 13, 143]]],
    layout: 'contiguous',
    values: 'regular',
    failures: [
      {
        check: 'value',
        tensor: 'out',
        mismatched: 5577,
        elements: 5577,
        worst: { index: [0, 10, 0], actual: 0.06750000268, expected: 0.0554, error: 0.012, allowed: 0.0001 },
        bug_class: 'normaliser',
        explanation: "5577 of 5577 elements of 'out' differ",
      },
    ],
    max_abs_diff: 0.0121,
    max_rel_diff: 0.2,
    tolerance: 'rigorous bound',
    time: 1,
    replay: `gpuemu reproduce ${LARGE_SEED} --op softmax`,
    ...changes,
  };
}

export function opReport(changes: Partial<OpReport> = {}): OpReport {
  const failures = changes.failures ?? [];
  return {
    op: 'softmax',
    status: failures.length > 0 ? 'failed' : 'passed',
    line: 7,
    cases: 20,
    passed: 20 - failures.length,
    failed: failures.length,
    dtypes: ['float32', 'float16'].map((dtype) => ({
      dtype,
      cases: 10,
      failed: failures.filter((failure) => failure.dtype === dtype).length,
      max_abs_diff: 0,
    })),
    failures,
    warnings: [],
    seconds: 1,
    ...changes,
  };
}

export function runReport(ops: OpReport[], mode = 'thorough'): RunReport {
  return { version: 1, passed: ops.every((op) => op.status === 'passed'), mode, seed: '1', seconds: 1, ops };
}

const at = (file: string, line: number, column: number, length: number): CheckedConfig['ops'][0]['place'] => ({
  file,
  range: { start: { line, column }, end: { line, column: column + length } },
});

export const CONFIG: CheckedConfig = {
  valid: true,
  file: '/project/gpuemu.toml',
  problems: [],
  project: { name: 'small', version: '0.1.0' },
  ops: [
    {
      name: 'softmax',
      place: at('/project/gpuemu.toml', 7, 8, 9),
      dtypes: ['float32', 'float16'],
      definition: at('/project/kernels/softmax.py', 4, 5, 7),
      reference_definition: null,
      files: ['/project/kernels/softmax.py'],
      tolerance: 'bound',
      tolerances: {},
    },
  ],
  kernels: [],
};
