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
  /** Cases that failed once and passed when they were run again. */
  mended: Set<string>;
  /** Dtypes that passed a thorough run, with no failure since. */
  clean: Set<string>;
}

/** What tells cases apart. A seed stands for another case in a quick run, and in its smallest form. */
function caseKey({ seed, dtype, sizes, layout, values, minimized }: ValidationResult): string {
  return [seed, dtype, sizes, layout, values, minimized ?? false].join(' ');
}

function same(left: ValidationResult, right: ValidationResult): boolean {
  return caseKey(left) === caseKey(right);
}

export class ProjectState {
  private readonly states = new Map<string, OpState>();

  ops(): OpState[] {
    return [...this.states.values()];
  }

  op(name: string): OpState {
    let state = this.states.get(name);
    if (state === undefined) {
      state = { op: name, dtypes: new Map(), failures: [], mended: new Set(), clean: new Set() };
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
   * Takes over what a run found. What failed before stays until its own case passes, or until a thorough run of its dtype
   * finds nothing. Dtypes that a run left out stay as they were in any case.
   */
  addRun(report: RunReport): void {
    const thorough = report.mode === 'thorough';
    for (const op of report.ops) {
      const state = this.op(op.op);
      state.report = op;
      const finished = op.status === 'passed' || op.status === 'failed' || op.status === 'expected_failure';
      for (const counts of op.dtypes) {
        state.dtypes.set(counts.dtype, counts);
        if (thorough && finished && counts.cases > 0 && counts.failed === 0) {
          state.clean.add(counts.dtype);
        }
      }
      state.failures = state.failures.filter(({ result }) => !state.clean.has(result.dtype));
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

  /** Open failures of an op that are not among some verdicts. */
  beyond(op: string, results: readonly ValidationResult[]): ValidationResult[] {
    const told = new Set(results.map(caseKey));
    const open = this.op(op).failures.map((failure) => failure.result);
    return open.filter((result) => !told.has(caseKey(result)));
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

  /** Whether a case that failed once is open, mended, or not known to be either. */
  standing(result: ValidationResult): 'open' | 'mended' | 'unknown' {
    const state = this.op(result.op);
    const smallest = state.failures.flatMap((failure) => failure.smallest?.result ?? []);
    if (this.failure(result) !== undefined || smallest.some((known) => same(known, result))) {
      return 'open';
    }
    return state.mended.has(caseKey(result)) || state.clean.has(result.dtype) ? 'mended' : 'unknown';
  }

  /**
   * What cases that were run by themselves say of their dtype: it fails while a failure is open, and it is only known to
   * pass where each of them did. One that could not be judged is no pass.
   */
  afterCases(op: string, dtype: string, results: readonly ValidationResult[]): 'failed' | 'passed' | 'unknown' {
    if (this.op(op).failures.some(({ result }) => result.dtype === dtype)) {
      return 'failed';
    }
    const concerned = results.filter((result) => result.op === op && result.dtype === dtype);
    return concerned.length > 0 && concerned.every((result) => result.outcome === 'passed') ? 'passed' : 'unknown';
  }

  /** The open failure of a case. */
  failure(result: ValidationResult): OpenFailure | undefined {
    return this.states.get(result.op)?.failures.find((failure) => same(failure.result, result));
  }

  private addFailure(result: ValidationResult): void {
    const { failures, clean, mended } = this.op(result.op);
    clean.delete(result.dtype);
    mended.delete(caseKey(result));
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
    state.mended.add(caseKey(result));
  }
}
