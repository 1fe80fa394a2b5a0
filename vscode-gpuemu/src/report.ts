// What the command line prints with `--format json`, as far as the extension reads it. Seeds are strings of digits: they
// are 64-bit numbers, which JavaScript's numbers cannot hold.

/** A number as gpuemu writes it: `"NaN"`, `"Infinity"` and `"-Infinity"` are strings. */
export type NumberText = number | string;

export interface WorstElement {
  index: number[];
  actual: NumberText;
  expected: NumberText;
  error: NumberText;
  allowed: NumberText;
}

export interface Finding {
  check: string;
  tensor: string;
  mismatched: number;
  elements: number;
  worst: WorstElement | null;
  bug_class: string;
  explanation: string;
}

export type Outcome = 'passed' | 'failed' | 'undetermined' | 'error';

/** The verdict on one case. */
export interface ValidationResult {
  op: string;
  outcome: Outcome;
  passed: boolean;
  seed: string;
  dtype: string;
  sizes: string;
  shapes: [string, number[]][];
  layout: string;
  values: string;
  failures: Finding[];
  message?: string;
  max_abs_diff: NumberText;
  max_rel_diff: NumberText;
  tolerance: string;
  time: number;
  minimized?: boolean;
  client_side?: boolean;
  settings?: { quick?: boolean };
  replay: string;
}

export interface DtypeCounts {
  dtype: string;
  cases: number;
  failed: number;
  max_abs_diff: NumberText;
}

export type OpStatus = 'passed' | 'failed' | 'expected_failure' | 'error' | 'unfinished';

/** How an op did in a run. */
export interface OpReport {
  op: string;
  status: OpStatus;
  line: number;
  cases: number;
  passed: number;
  failed: number;
  dtypes: DtypeCounts[];
  failures: ValidationResult[];
  message?: string;
  warnings: string[];
  weak?: string[];
  seconds: number;
}

export interface RunReport {
  version: number;
  passed: boolean;
  mode: string;
  seed: string;
  seconds: number;
  ops: OpReport[];
}

export interface Neighbour {
  dimension: string;
  fails: number;
  passes: number;
}

/** The smallest failing case. */
export interface Minimized {
  original: ValidationResult;
  minimized: ValidationResult;
  neighbour: Neighbour | null;
  runs: number;
}

/** A stored failure that was run again. */
export interface Replayed {
  status: 'FIXED' | 'FAILED' | 'ERROR' | 'SKIPPED';
  result: ValidationResult;
}

/** Lines and columns count from 1, columns in characters. */
export interface TextPlace {
  line: number;
  column: number;
}

export interface TextRange {
  start: TextPlace;
  end: TextPlace;
}

export interface Place {
  file: string;
  range: TextRange;
}

export interface ConfigProblem {
  file: string;
  range: TextRange | null;
  message: string;
  hint: string | null;
}

export interface TolerancePair {
  atol: number;
  rtol: number;
}

export interface CheckedOp {
  name: string;
  place: Place;
  dtypes: string[];
  definition: Place | null;
  reference_definition: Place | null;
  files: string[];
  tolerance: 'bound' | 'calibrated' | 'fixed';
  tolerances: Record<string, TolerancePair>;
}

export interface CheckedKernel {
  name: string;
  place: Place;
  source: string;
  files: string[];
}

/** What `gpuemu config check` says. */
export interface CheckedConfig {
  valid: boolean;
  file: string;
  problems: ConfigProblem[];
  project: { name: string; version: string } | null;
  ops: CheckedOp[];
  kernels: CheckedKernel[];
}

export interface DaemonState {
  running: boolean;
  socket: string;
  status?: {
    version: string;
    pid: number;
    uptime_seconds: number;
    running_jobs: number;
    stored: { results: number; failures: number };
  };
}

/** A share of what is allowed, `"Infinity"`, `"NaN"` for a special value, or nothing where nothing can be said. */
export type ElementError = NumberText | null;

/** Errors over the last two dims. */
export interface HeatMap {
  rows: number;
  columns: number;
  entries: number;
  row_step: number;
  column_step: number;
  cells: ElementError[];
}

export interface Tile {
  size: number;
  seen_by: string;
}

/** The errors of one output of a case. */
export interface ErrorPicture {
  tensor: string;
  dtype: string;
  shape: number[];
  mismatched: number;
  elements: number;
  map: HeatMap;
  row_tile?: Tile;
  column_tile?: Tile;
  window: {
    worst: number[];
    first_row: number;
    first_column: number;
    rows: { actual: NumberText; expected: NumberText; error: ElementError }[][];
  };
}

/** The errors of a case. */
export interface Illustration {
  result: ValidationResult;
  picture?: ErrorPicture;
  without_picture?: string;
}

export interface CodePlace {
  instruction: string;
  ptx_line: number;
  file: string | null;
  line: number | null;
}

export interface AccessFinding {
  fault: string;
  message: string;
  place: CodePlace | null;
  occurrences: number;
}

/** What `gpuemu sanitize` says. */
export interface LaunchReport {
  file: string;
  entry: string;
  failure: string | null;
  findings: AccessFinding[];
  more_findings: number;
  not_checked: string[];
}

const SEED = /^[0-9]{1,20}$/;
const LARGEST_SEED = (1n << 64n) - 1n;

/** A seed as text, unchanged; throws if it is none. A number would already have lost digits. */
export function seedText(seed: unknown): string {
  if (typeof seed !== 'string' || !SEED.test(seed) || BigInt(seed) > LARGEST_SEED) {
    throw new Error(`not a seed: ${JSON.stringify(seed)}`);
  }
  return seed;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function demand(condition: boolean, what: string): asserts condition {
  if (!condition) {
    throw new Error(`gpuemu's answer is not ${what}; the extension and the program may be of different versions`);
  }
}

/** A report on a run, or an error that says it is none. */
export function asRunReport(value: unknown): RunReport {
  demand(isObject(value) && value['version'] === 1 && Array.isArray(value['ops']), 'a report of version 1');
  for (const op of value['ops'] as unknown[]) {
    demand(isObject(op) && Array.isArray(op['failures']) && Array.isArray(op['dtypes']), 'a report of version 1');
    (op['failures'] as unknown[]).forEach(asResult);
  }
  return value as unknown as RunReport;
}

/** The verdict on a case, or an error that says it is none. */
export function asResult(value: unknown): ValidationResult {
  demand(isObject(value) && typeof value['op'] === 'string' && Array.isArray(value['failures']), 'a verdict');
  seedText(value['seed']);
  return value as unknown as ValidationResult;
}

export function asResults(value: unknown): ValidationResult[] {
  demand(Array.isArray(value), 'a list of verdicts');
  return value.map(asResult);
}

export function asReplayed(value: unknown): Replayed[] {
  demand(Array.isArray(value), 'a list of replayed failures');
  return value.map((entry: unknown) => {
    demand(isObject(entry) && typeof entry['status'] === 'string', 'a replayed failure');
    asResult(entry['result']);
    return entry as unknown as Replayed;
  });
}

export function asMinimized(value: unknown): Minimized {
  demand(isObject(value), 'a minimised failure');
  asResult(value['original']);
  asResult(value['minimized']);
  return value as unknown as Minimized;
}

export function asCheckedConfig(value: unknown): CheckedConfig {
  demand(isObject(value) && Array.isArray(value['problems']) && Array.isArray(value['ops']), 'a checked configuration');
  return value as unknown as CheckedConfig;
}

export function asDaemonState(value: unknown): DaemonState {
  demand(isObject(value) && typeof value['running'] === 'boolean', "the daemon's state");
  return value as unknown as DaemonState;
}

export function asIllustration(value: unknown): Illustration {
  demand(isObject(value), 'a picture of a failure');
  asResult(value['result']);
  return value as unknown as Illustration;
}

export function asLaunchReport(value: unknown): LaunchReport {
  demand(isObject(value) && Array.isArray(value['findings']), 'the report on a launch');
  return value as unknown as LaunchReport;
}
