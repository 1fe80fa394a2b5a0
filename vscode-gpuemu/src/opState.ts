// What is known of a project's ops at this moment, from runs, replays and single cases.

import type { DtypeCounts, Minimized, Neighbour, OpReport, Replayed, RunReport, ValidationResult } from './report.ts';

/** A failure that is not mended, as far as known. */
export interface OpenFailure {
  result: ValidationResult;
  /** Its smallest form, once it was searched for. */
  smallest?: { result: ValidationResult; neighbour: Neighbour | null };
}

export interface OpState {
  op: string;
  /** The last run of it, in any dtype. */
  report?: OpReport;
  /** The last counts of each dtype. */
  dtypes: Map<string, DtypeCounts>;
  failures: OpenFailure[];
}

/** Whether two verdicts are on the same case. A seed stands for another case in a quick run, and in its smallest form. */
function same(left: ValidationResult, right: ValidationResult): boolean {
  const key = (result: ValidationResult): string =>
    [result.seed, result.dtype, result.sizes, result.minimized ?? false, result.settings?.quick ?? false].join(' ');
  return key(left) === key(right);
}

export class ProjectState {
  private readonly states = new Map<string, OpState>();

  ops(): OpState[] {
    return [...this.states.values()];
  }

  op(name: string): OpState {
    let state = this.states.get(name);
    if (state === undefined) {
      state = { op: name, dtypes: new Map(), failures: [] };
      this.states.set(name, state);
    }
    return state;
  }

  /** Forgets ops that are no longer in the configuration. */
  keepOnly(names: readonly string[]): void {
    for (const name of [...this.states.keys()]) {
      if (!names.includes(name)) {
        this.states.delete(name);
      }
    }
  }

  /**
   * Takes over what a run found. A quick run tries few cases: what failed before stays until its own case passes. Dtypes
   * that a run left out stay as they were in any case.
   */
  addRun(report: RunReport): void {
    const thorough = report.mode === 'thorough';
    for (const op of report.ops) {
      const state = this.op(op.op);
      state.report = op;
      const tried = new Set<string>();
      for (const counts of op.dtypes) {
        state.dtypes.set(counts.dtype, counts);
        tried.add(counts.dtype);
      }
      const finished = op.status === 'passed' || op.status === 'failed' || op.status === 'expected_failure';
      if (thorough && finished) {
        const again = (failure: OpenFailure): boolean => op.failures.some((result) => same(result, failure.result));
        state.failures = state.failures.filter((failure) => !tried.has(failure.result.dtype) || again(failure));
      }
      // Failures that are expected are none that anyone has to look at.
      if (op.status !== 'expected_failure') {
        op.failures.forEach((result) => this.addFailure(result));
      }
    }
  }

  /** Takes over what became of stored failures. */
  addReplayed(replayed: readonly Replayed[]): void {
    for (const { status, result } of replayed) {
      if (status === 'FIXED') {
        this.remove(result);
      } else if (status === 'FAILED') {
        this.addFailure(result);
      }
    }
  }

  /** Takes over the verdict on one case. */
  addResult(result: ValidationResult): void {
    if (result.outcome === 'failed') {
      this.addFailure(result);
    } else if (result.outcome === 'passed') {
      this.remove(result);
    }
  }

  addMinimized(minimized: Minimized): void {
    this.addFailure(minimized.original);
    const failures = this.op(minimized.original.op).failures;
    const failure = failures.find((known) => same(known.result, minimized.original));
    if (failure !== undefined) {
      failure.smallest = { result: minimized.minimized, neighbour: minimized.neighbour };
    }
  }

  /** The open failure of a case. */
  failure(result: ValidationResult): OpenFailure | undefined {
    return this.states.get(result.op)?.failures.find((failure) => same(failure.result, result));
  }

  private addFailure(result: ValidationResult): void {
    const failures = this.op(result.op).failures;
    const known = failures.find((failure) => same(failure.result, result));
    if (known === undefined) {
      failures.push({ result });
    } else {
      known.result = result;
    }
  }

  private remove(result: ValidationResult): void {
    const state = this.op(result.op);
    state.failures = state.failures.filter((failure) => !same(failure.result, result));
  }
}
