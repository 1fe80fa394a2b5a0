// The Test Explorer: an item for each op, below it one for each dtype.

import * as vscode from 'vscode';

import { locationOf, signalOf } from '../positions.ts';
import { failureMessage, short } from '../problemMapping.ts';
import { Cancelled } from '../process.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import type { CheckedOp, OpReport, RunReport, ValidationResult } from '../report.ts';
import type { Affected, ValidationWatcher } from './validationWatcher.ts';

/** What an item stands for. */
interface Subject {
  project: Project;
  op?: string;
  dtype?: string;
}

/** Dtypes of an op that are to be run; all of them if none is named. */
type Selection = Map<Project, Map<string, Set<string>>>;

interface Continuous {
  selection: Selection;
  quick: boolean;
  request: vscode.TestRunRequest;
  token: vscode.CancellationToken;
}

export class TestExplorer implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController('gpuemu', 'gpuemu');
  private readonly subjects = new WeakMap<vscode.TestItem, Subject>();
  private readonly subscriptions: vscode.Disposable[];
  private readonly continuous = new Set<Continuous>();

  constructor(
    private readonly projects: Projects,
    watcher: ValidationWatcher,
    private readonly report: (error: unknown) => void,
  ) {
    const { Run } = vscode.TestRunProfileKind;
    const profile = (name: string, quick: boolean): void => {
      const handler = (request: vscode.TestRunRequest, token: vscode.CancellationToken): void =>
        void this.handle(request, token, quick);
      this.controller.createRunProfile(name, Run, handler, !quick, undefined, true);
    };
    profile('Run', false);
    profile('Run quick', true);
    this.controller.refreshHandler = async (): Promise<void> => {
      await Promise.all(this.projects.all().map((project) => project.check()));
    };
    watcher.leaveTo((affected) => this.runContinuously(affected));
    this.subscriptions = [
      projects.onDidChangeList(() => this.discover()),
      projects.onDidChange(({ project, change }) => {
        if (change.kind === 'config') {
          this.discover();
        } else if (change.kind === 'run' && !change.shown) {
          this.publish(project, change.report);
        } else if (change.kind === 'cases') {
          this.publishCases(project, change.results);
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.controller.dispose();
  }

  /** Makes the items that the configurations ask for, and no other. */
  private discover(): void {
    const projects = this.projects.all().filter((project) => project.config !== undefined);
    const several = projects.length > 1;
    const roots = projects.flatMap((project) => {
      const ops = (project.config?.ops ?? []).map((op) => this.opItem(project, op));
      if (!several) {
        return ops;
      }
      const item = this.item(project.file.toString(), project.name, project.file, { project });
      item.children.replace(ops);
      return [item];
    });
    this.controller.items.replace(roots);
  }

  private opItem(project: Project, op: CheckedOp): vscode.TestItem {
    const place = locationOf(op.definition ?? op.place);
    const id = `${project.file.toString()} ${op.name}`;
    const item = this.item(id, op.name, place.uri, { project, op: op.name });
    item.range = place.range;
    item.children.replace(
      op.dtypes.map((dtype) => {
        const child = this.item(`${id} ${dtype}`, dtype, place.uri, { project, op: op.name, dtype });
        child.range = place.range;
        return child;
      }),
    );
    return item;
  }

  private item(id: string, label: string, file: vscode.Uri, subject: Subject): vscode.TestItem {
    const item = this.controller.createTestItem(id, label, file);
    this.subjects.set(item, subject);
    return item;
  }

  private *leaves(items: Iterable<vscode.TestItem>): Generator<{ item: vscode.TestItem; subject: Subject }> {
    for (const item of items) {
      if (item.children.size > 0) {
        yield* this.leaves([...item.children].map(([, child]) => child));
      } else {
        const subject = this.subjects.get(item);
        if (subject !== undefined) {
          yield { item, subject };
        }
      }
    }
  }

  private roots(): vscode.TestItem[] {
    return [...this.controller.items].map(([, item]) => item);
  }

  private selected(request: vscode.TestRunRequest): Selection {
    const excluded = new Set([...this.leaves(request.exclude ?? [])].map(({ item }) => item));
    const selection: Selection = new Map();
    for (const { item, subject } of this.leaves(request.include ?? this.roots())) {
      if (excluded.has(item) || subject.op === undefined) {
        continue;
      }
      const ops = selection.get(subject.project) ?? new Map<string, Set<string>>();
      const dtypes = ops.get(subject.op) ?? new Set<string>();
      if (subject.dtype !== undefined) {
        dtypes.add(subject.dtype);
      }
      selection.set(subject.project, ops.set(subject.op, dtypes));
    }
    return selection;
  }

  private async handle(request: vscode.TestRunRequest, token: vscode.CancellationToken, quick: boolean): Promise<void> {
    const selection = this.selected(request);
    if (request.continuous) {
      const continuous: Continuous = { selection, quick, request, token };
      this.continuous.add(continuous);
      token.onCancellationRequested(() => this.continuous.delete(continuous));
      return;
    }
    await this.run(request, selection, token, quick);
  }

  /** Runs what a save concerns, if a continuous run watches it. */
  private runContinuously({ project, ops }: Affected): boolean {
    let taken = false;
    for (const { selection, quick, request, token } of this.continuous) {
      const watched = [...(selection.get(project) ?? [])].filter(([op]) => ops.includes(op));
      if (watched.length > 0) {
        taken = true;
        void this.run(request, new Map([[project, new Map(watched)]]), token, quick);
      }
    }
    return taken;
  }

  private async run(
    request: vscode.TestRunRequest,
    selection: Selection,
    token: vscode.CancellationToken,
    quick: boolean,
  ): Promise<void> {
    const run = this.controller.createTestRun(request);
    const stop = new AbortController();
    for (const wish of [token, run.token]) {
      signalOf(wish).addEventListener('abort', () => stop.abort());
    }
    try {
      for (const [project, ops] of selection) {
        const all = (op: string): number => project.config?.ops.find((known) => known.name === op)?.dtypes.length ?? 0;
        const whole = [...ops].filter(([op, dtypes]) => dtypes.size === 0 || dtypes.size === all(op)).map(([op]) => op);
        const parts = [...ops].filter(([op]) => !whole.includes(op));
        this.mark(project, ops, (item) => run.started(item));
        if (whole.length > 0) {
          await this.testAndShow(run, project, { ops: whole, quick }, stop.signal);
        }
        for (const [op, dtypes] of parts) {
          await this.testAndShow(run, project, { ops: [op], dtypes: [...dtypes], quick }, stop.signal);
        }
      }
    } catch (error) {
      if (!(error instanceof Cancelled)) {
        const message = new vscode.TestMessage((error as Error).message);
        selection.forEach((ops, project) => this.mark(project, ops, (item) => run.errored(item, message)));
        this.report(error);
      }
    } finally {
      run.end();
    }
  }

  private mark(project: Project, ops: Map<string, Set<string>>, act: (item: vscode.TestItem) => void): void {
    for (const { item, subject } of this.leaves(this.roots())) {
      const dtypes = subject.project === project && subject.op !== undefined ? ops.get(subject.op) : undefined;
      if (dtypes !== undefined && (dtypes.size === 0 || subject.dtype === undefined || dtypes.has(subject.dtype))) {
        act(item);
      }
    }
  }

  private async testAndShow(
    run: vscode.TestRun,
    project: Project,
    options: { ops: string[]; dtypes?: string[]; quick: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const report = await project.test(options, signal, true);
    for (const op of report.ops) {
      this.showOp(run, project, op, true);
    }
  }

  /** Shows what a run found that was not started here. */
  private publish(project: Project, report: RunReport): void {
    const items = report.ops.flatMap((op) => this.items(project, op.op).map(({ item }) => item));
    const run = this.controller.createTestRun(new vscode.TestRunRequest(items), report.mode, false);
    report.ops.forEach((op) => this.showOp(run, project, op, false));
    run.end();
  }

  private items(project: Project, op: string): { item: vscode.TestItem; subject: Subject }[] {
    return [...this.leaves(this.roots())].filter(({ subject }) => subject.project === project && subject.op === op);
  }

  /** Dtypes that a run left out stay as they were, unless they were asked for. */
  private showOp(run: vscode.TestRun, project: Project, op: OpReport, askedFor: boolean): void {
    const milliseconds = op.seconds * 1000;
    for (const { item, subject } of this.items(project, op.op)) {
      const counts = op.dtypes.find((known) => known.dtype === subject.dtype);
      const failures = op.failures.filter((result) => result.dtype === subject.dtype);
      if (op.status === 'error') {
        run.errored(item, new vscode.TestMessage(op.message ?? 'it could not be judged'), milliseconds);
      } else if (counts === undefined || counts.cases === 0) {
        if (askedFor) {
          run.skipped(item);
        }
      } else if (counts.failed > 0 && op.status !== 'expected_failure') {
        const messages = failures.slice(0, 5).map((result) => messageOf(result, item));
        const none = new vscode.TestMessage(`${counts.failed} of ${counts.cases} cases failed`);
        run.failed(item, messages.length > 0 ? messages : none, milliseconds);
      } else if (op.status === 'unfinished') {
        run.errored(item, new vscode.TestMessage(op.message ?? 'not all cases were run'), milliseconds);
      } else {
        run.passed(item, milliseconds);
      }
      if (counts !== undefined) {
        const line = `${op.op} ${counts.dtype}: ${counts.failed} of ${counts.cases} cases failed`;
        run.appendOutput(`${line}, largest error ${short(counts.max_abs_diff)}\r\n`, undefined, item);
      }
    }
  }

  /** Shows cases that were run by themselves: a quick run may have missed a failure that is known. */
  private publishCases(project: Project, results: readonly ValidationResult[]): void {
    const concerned = results.flatMap((result) =>
      this.items(project, result.op).filter(({ subject }) => subject.dtype === result.dtype),
    );
    const items = new Map(concerned.map(({ item, subject }) => [item, subject]));
    const run = this.controller.createTestRun(new vscode.TestRunRequest([...items.keys()]), 'replay', false);
    for (const [item, { op = '', dtype = '' }] of items) {
      const open = project.state.op(op).failures.filter(({ result }) => result.dtype === dtype);
      switch (project.state.afterCases(op, dtype, results)) {
        case 'failed':
          run.failed(item, open.slice(0, 5).map(({ result }) => messageOf(result, item)));
          break;
        case 'passed':
          run.passed(item);
          break;
        case 'unknown':
          run.errored(item, new vscode.TestMessage('a case that was run again could not be judged'));
          break;
      }
    }
    run.end();
  }
}

function messageOf(result: ValidationResult, item: vscode.TestItem): vscode.TestMessage {
  const text = failureMessage({ result }, 1);
  const worst = result.failures[0]?.worst;
  const message = worst
    ? vscode.TestMessage.diff(text, `${short(worst.expected)}\n`, `${short(worst.actual)}\n`)
    : new vscode.TestMessage(text);
  if (item.uri !== undefined && item.range !== undefined) {
    message.location = new vscode.Location(item.uri, item.range);
  }
  return message;
}
