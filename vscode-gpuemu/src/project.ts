// A project: a folder with a gpuemu.toml, what its configuration says and what is known of its ops.

import { realpathSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

import * as commandLine from './commandLine.ts';
import { ProjectState } from './opState.ts';
import { relocated } from './relocation.ts';
import {
  asCheckedConfig,
  asIllustration,
  asMinimized,
  asReplayed,
  asResult,
  asResults,
  asRunReport,
  type CheckedConfig,
  type Illustration,
  type Minimized,
  type Replayed,
  type RunReport,
  type ValidationResult,
} from './report.ts';
import type { Runner } from './runner.ts';

/** Stored failures that are run again, the newest first. */
const LEAST_REPLAYED = 20;
const MOST_REPLAYED = 100;

/** What changed in a project. */
export type Change =
  | { kind: 'config' }
  | { kind: 'started'; what: string }
  /** A run; `shown` where whoever started it shows it in the Test Explorer. */
  | { kind: 'run'; report: RunReport; shown: boolean }
  /** Cases that were run by themselves. */
  | { kind: 'cases'; results: ValidationResult[] }
  | { kind: 'stopped'; error?: Error };

function realPath(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

export class Project implements vscode.Disposable {
  readonly root: string;
  /** The same folder as programs see it. */
  private readonly realRoot: string;
  readonly state = new ProjectState();
  config: CheckedConfig | undefined;
  private readonly changed = new vscode.EventEmitter<Change>();
  readonly onDidChange = this.changed.event;

  constructor(
    readonly file: vscode.Uri,
    private readonly runner: Runner,
  ) {
    this.root = path.dirname(file.fsPath);
    this.realRoot = realPath(this.root);
  }

  dispose(): void {
    this.changed.dispose();
  }

  get name(): string {
    return this.config?.project?.name ?? path.basename(this.root);
  }

  /** Asks the command line about the configuration, with a text that need not be saved. */
  async check(text?: string, signal?: AbortSignal): Promise<CheckedConfig> {
    const answer = await this.runner.json(commandLine.checkConfig(text !== undefined), this.options(signal, text));
    const checked = relocated(asCheckedConfig(answer.value), this.realRoot, this.root);
    // While the file cannot be read as a configuration, the ops are where they were.
    if (checked.project !== null) {
      this.config = checked;
      this.state.keepOnly(checked.ops.map((op) => op.name));
      this.changed.fire({ kind: 'config' });
    }
    return checked;
  }

  /** Runs ops and takes over what was found. */
  async test(options: commandLine.TestOptions, signal?: AbortSignal, shown = false): Promise<RunReport> {
    return this.run('testing', commandLine.test(options), signal, shown);
  }

  async fuzz(ops: readonly string[], iterations: number, signal?: AbortSignal): Promise<RunReport> {
    return this.run('fuzzing', commandLine.fuzz(ops, iterations), signal, false);
  }

  async reproduce(result: ValidationResult, signal?: AbortSignal): Promise<ValidationResult> {
    return this.working('reproducing', async () => {
      const answer = await this.runner.json(commandLine.reproduce(result), this.options(signal));
      const again = asResult(answer.value);
      this.state.addResult(again);
      this.changed.fire({ kind: 'cases', results: [again] });
      return again;
    });
  }

  /** Where the output of a failing case is wrong. */
  async picture(result: ValidationResult, signal?: AbortSignal): Promise<Illustration> {
    return asIllustration((await this.runner.json(commandLine.picture(result), this.options(signal))).value);
  }

  /** Writes the report on stored results as a page. */
  async writeReport(file: string, signal?: AbortSignal): Promise<void> {
    await this.runner.writing(commandLine.htmlReport(file), this.options(signal));
  }

  async minimize(result: ValidationResult, signal?: AbortSignal): Promise<Minimized> {
    return this.working('minimising', async () => {
      const answer = await this.runner.json(commandLine.minimize(result), this.options(signal));
      const minimized = asMinimized(answer.value);
      this.state.addMinimized(minimized);
      this.changed.fire({ kind: 'cases', results: [minimized.original] });
      return minimized;
    });
  }

  /** Runs failures of an op again, stored ones and those that are shown: those that are mended are problems no longer. */
  async replay(op: string, signal?: AbortSignal): Promise<Replayed[]> {
    const open = this.state.op(op).failures.length;
    const limit = Math.min(MOST_REPLAYED, Math.max(LEAST_REPLAYED, open));
    const answer = await this.runner.json(commandLine.replayFailures(op, limit), this.options(signal));
    const replayed = asReplayed(answer.value);
    this.state.addReplayed(replayed);
    // The newest stored failures need not be all that are shown.
    const left = this.state.beyond(op, replayed.map(({ result }) => result));
    for (const result of left.slice(0, LEAST_REPLAYED)) {
      await this.reproduce(result, signal);
    }
    const told = replayed.filter(({ status }) => status === 'FIXED' || status === 'FAILED');
    this.changed.fire({ kind: 'cases', results: told.map(({ result }) => result) });
    return replayed;
  }

  async failures(): Promise<ValidationResult[]> {
    return asResults((await this.runner.json(commandLine.failures(), this.options())).value);
  }

  /** The text of the configuration with a tolerance set. */
  async withTolerance(text: string, op: string, dtype: string, atol: string, rtol: string): Promise<string> {
    const words = commandLine.setTolerance(op, dtype, atol, rtol);
    const { value } = await this.runner.json(words, this.options(undefined, text));
    const { file, text: edited } = relocated(value as { file: string; text: string }, this.realRoot, this.root);
    if (path.resolve(file) !== path.resolve(this.file.fsPath)) {
      throw new Error(`${op} is defined in ${file}: edit it there`);
    }
    return edited;
  }

  /** Does several things as one, for whoever shows that something is at work. */
  async working<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    this.changed.fire({ kind: 'started', what });
    try {
      const result = await work();
      this.changed.fire({ kind: 'stopped' });
      return result;
    } catch (error) {
      this.changed.fire({ kind: 'stopped', error: error as Error });
      throw error;
    }
  }

  private async run(what: string, words: string[], signal: AbortSignal | undefined, shown: boolean): Promise<RunReport> {
    return this.working(what, async () => {
      const report = asRunReport((await this.runner.json(words, this.options(signal))).value);
      this.state.addRun(report);
      this.changed.fire({ kind: 'run', report, shown });
      return report;
    });
  }

  private options(signal?: AbortSignal, input?: string): { folder: string; signal?: AbortSignal; input?: string } {
    return { folder: this.root, signal, input };
  }
}
