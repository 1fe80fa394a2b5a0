// What belongs into the Problems panel, and where.

import type { OpenFailure, OpState } from './opState.ts';
import type { CheckedConfig, CheckedOp, Finding, NumberText, Place, ValidationResult } from './report.ts';

export interface Problem {
  place: Place;
  severity: 'error' | 'warning';
  message: string;
  op: string;
  /** The failure that it shows; its seed is the problem's code. */
  failure?: ValidationResult;
  /** The other places that it is shown at. */
  related: { place: Place; message: string }[];
}

/** Problems of all ops that are in the configuration. */
export function problemsOf(states: readonly OpState[], config: CheckedConfig): Problem[] {
  return states.flatMap((state) => {
    const op = config.ops.find((known) => known.name === state.op);
    return op === undefined ? [] : problemsOfOp(state, op);
  });
}

function problemsOfOp(state: OpState, op: CheckedOp): Problem[] {
  const failures = alike(state.failures).flatMap((group) => failureProblems(group, op));
  return [...failures, ...runProblems(state, op)];
}

/** Failures that look the same are one problem: of the same dtype, found by the same check. */
export function alike(failures: readonly OpenFailure[]): OpenFailure[][] {
  const groups = new Map<string, OpenFailure[]>();
  for (const failure of failures) {
    const key = [failure.result.dtype, failure.result.failures[0]?.check].join(' ');
    groups.set(key, [...(groups.get(key) ?? []), failure]);
  }
  return [...groups.values()];
}

/** The failure of a group that says most: one that was minimised, or the first. */
function representative(group: readonly OpenFailure[]): OpenFailure | undefined {
  return group.find((failure) => failure.smallest !== undefined) ?? group[0];
}

function failureProblems(group: readonly OpenFailure[], op: CheckedOp): Problem[] {
  const shown = representative(group);
  if (shown === undefined) {
    return [];
  }
  const message = failureMessage(shown, group.length);
  const definition = op.definition === null ? [] : [{ place: op.definition, message: `what runs ${op.name}` }];
  const reference = op.reference_definition;
  const judged = reference === null ? [] : [{ place: reference, message: `the reference of ${op.name}` }];
  const configured = { place: op.place, message: `${op.name} in the configuration` };
  const common = { severity: 'error' as const, message, op: op.name, failure: shown.result };
  const atConfiguration: Problem = { ...common, place: op.place, related: [...definition, ...judged] };
  const atSource = definition.map(({ place }): Problem => ({ ...common, place, related: [configured, ...judged] }));
  return [atConfiguration, ...atSource];
}

/** What a run says of an op beyond its failures. */
function runProblems(state: OpState, op: CheckedOp): Problem[] {
  const report = state.report;
  if (report === undefined) {
    return [];
  }
  const problem = (severity: 'error' | 'warning', message: string, place = op.place): Problem => ({
    place,
    severity,
    message,
    op: op.name,
    related: [],
  });
  const found: Problem[] = [];
  if (report.status === 'error') {
    // What could not be judged is mostly the reference's fault.
    const place = op.reference_definition ?? op.definition ?? op.place;
    found.push(problem('error', `${op.name} could not be judged: ${report.message ?? 'no reason is known'}`, place));
  } else if (report.status === 'unfinished') {
    found.push(problem('warning', `${op.name}: ${report.message ?? 'not all cases were run'}`));
  }
  found.push(...report.warnings.map((warning) => problem('warning', `${op.name}: ${warning}`)));
  for (const dtype of report.weak ?? []) {
    found.push(problem('warning', `${op.name} passes in ${dtype}, but plainly wrong outputs would have passed as well`));
  }
  return found;
}

/** What is wrong, the case, the worst element, and how to run it again. */
export function failureMessage(failure: OpenFailure, count: number): string {
  const { result, smallest } = failure;
  const finding = result.failures[0];
  const lines = [`${result.op} fails in ${result.dtype}: ${finding === undefined ? (result.message ?? '') : what(finding)}`];
  lines.push(`case: ${caseText(result)}`);
  if (finding?.worst) {
    const { index, actual, expected, error, allowed } = finding.worst;
    const numbers = `${short(actual)}, expected ${short(expected)} (error ${short(error)}, allowed ${short(allowed)})`;
    lines.push(`worst at [${index.join(', ')}]: ${numbers}`);
  }
  if (smallest !== undefined) {
    lines.push(`smallest failing case: ${smallestText(smallest.result, smallest.neighbour)}`);
  }
  if (count > 1) {
    lines.push(`${count - 1} more ${count === 2 ? 'case fails' : 'cases fail'} alike`);
  }
  lines.push(`replay: ${result.replay}`);
  return lines.join('\n');
}

export function what(finding: Finding): string {
  return `${finding.check}: ${finding.explanation} [${finding.bug_class.replaceAll('_', ' ')}]`;
}

export function caseText(result: ValidationResult): string {
  const shapes = result.shapes.map(([name, sizes]) => `${name}[${sizes.join(', ')}]`).join(' ');
  const parts = [result.dtype, shapes, result.layout, `${result.values} values`, `seed ${result.seed}`];
  return parts.filter((part) => part !== '').join(', ');
}

export function smallestText(
  result: ValidationResult,
  neighbour: { dimension: string; fails: number; passes: number } | null,
): string {
  const beside =
    neighbour === null
      ? 'no passing case next to it was found'
      : `fails at ${neighbour.dimension}=${neighbour.fails}, passes at ${neighbour.dimension}=${neighbour.passes}`;
  return `${result.dtype}, ${result.sizes} (${beside})`;
}

/** A number with as many digits as one reads. */
export function short(value: NumberText): string {
  if (typeof value !== 'number') {
    return value;
  }
  const small = value !== 0 && Math.abs(value) < 1e-3;
  return small ? Number(value.toPrecision(4)).toExponential() : String(Number(value.toPrecision(6)));
}
