// Validation on save: of the ops that a saved file concerns, and of nothing else.

import * as vscode from 'vscode';

import { Debounce } from '../debounce.ts';
import { Cancelled } from '../process.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import { settings } from '../settings.ts';
import type { ConfigValidator } from './configValidator.ts';

export interface Affected {
  project: Project;
  ops: string[];
}

export class ValidationWatcher implements vscode.Disposable {
  private readonly debounce: Debounce<vscode.TextDocument>;
  private readonly saved: vscode.Disposable;
  /** The run of each project: a new save makes an old one worthless. */
  private readonly running = new Map<Project, AbortController>();
  /** Runs in place of this one, where a continuous run of the Test Explorer has taken over. */
  private takeover: ((affected: Affected) => boolean) | undefined;

  constructor(
    private readonly projects: Projects,
    private readonly config: ConfigValidator,
    private readonly report: (error: unknown) => void,
  ) {
    this.debounce = new Debounce(
      () => settings.debounce(),
      (documents) => void this.validate(documents),
    );
    this.saved = vscode.workspace.onDidSaveTextDocument((document) => {
      if (document.uri.scheme === 'file' && this.projects.concerned(document.uri).length > 0) {
        this.debounce.add(document);
      }
    });
  }

  dispose(): void {
    this.saved.dispose();
    this.debounce.dispose();
    this.running.forEach((run) => run.abort());
  }

  /** Ops that a continuous run watches are left to it. */
  leaveTo(takeover: (affected: Affected) => boolean): void {
    this.takeover = takeover;
  }

  private async validate(documents: vscode.TextDocument[]): Promise<void> {
    // The configuration says which ops there are: it is looked at first.
    for (const document of documents) {
      const isConfiguration = this.projects.all().some((project) => project.file.fsPath === document.uri.fsPath);
      if (isConfiguration && !(await this.config.validate(document))) {
        return;
      }
    }
    const affected = new Map<Project, Set<string>>();
    for (const { project, ops } of documents.flatMap((document) => this.projects.concerned(document.uri))) {
      const known = affected.get(project) ?? new Set();
      ops.forEach((op) => known.add(op));
      affected.set(project, known);
    }
    for (const [project, ops] of affected) {
      const one = { project, ops: [...ops] };
      if (one.ops.length > 0 && !this.takeover?.(one) && settings.validateOnSave()) {
        await this.run(one);
      }
    }
  }

  /** Tries new cases, and then every failure that is known: only what passes by itself is cleared. */
  private async run({ project, ops }: Affected): Promise<void> {
    this.running.get(project)?.abort();
    const run = new AbortController();
    this.running.set(project, run);
    try {
      await project.working('validating', async () => {
        await project.test({ ops, quick: settings.validateOnSaveMode() === 'quick' }, run.signal);
        for (const op of ops) {
          await project.replay(op, run.signal);
        }
      });
    } catch (error) {
      if (!(error instanceof Cancelled)) {
        this.report(error);
      }
    } finally {
      if (this.running.get(project) === run) {
        this.running.delete(project);
      }
    }
  }
}
