// Failures and warnings in the Problems panel.

import * as vscode from 'vscode';

import { locationOf } from '../positions.ts';
import { problemsOf, type Problem } from '../problemMapping.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';

export const SOURCE = 'gpuemu';

export class DiagnosticManager implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('gpuemu');
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly projects: Projects) {
    this.subscriptions = [
      projects.onDidChange(({ change }) => {
        if (change.kind === 'config' || change.kind === 'run' || change.kind === 'cases') {
          this.show();
        }
      }),
      projects.onDidChangeList(() => this.show()),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.collection.dispose();
  }

  /** The failures that a problem stands for: its project, op and seed. */
  failureOf(file: vscode.Uri, diagnostic: vscode.Diagnostic): { project: Project; problem: Problem } | undefined {
    for (const project of this.projects.all()) {
      // Cases of quick and of thorough runs may have the same seed: the whole text tells them apart.
      const problem = this.problems(project).find(
        (known) => known.failure !== undefined && known.message === diagnostic.message && known.place.file === file.fsPath,
      );
      if (problem !== undefined) {
        return { project, problem };
      }
    }
    return undefined;
  }

  private problems(project: Project): Problem[] {
    return project.config === undefined ? [] : problemsOf(project.state.ops(), project.config);
  }

  private show(): void {
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const problem of this.projects.all().flatMap((project) => this.problems(project))) {
      const file = problem.place.file;
      byFile.set(file, [...(byFile.get(file) ?? []), diagnosticOf(problem)]);
    }
    this.collection.clear();
    byFile.forEach((diagnostics, file) => this.collection.set(vscode.Uri.file(file), diagnostics));
  }
}

function diagnosticOf(problem: Problem): vscode.Diagnostic {
  const severity =
    problem.severity === 'error' ? vscode.DiagnosticSeverity.Error : vscode.DiagnosticSeverity.Warning;
  const diagnostic = new vscode.Diagnostic(locationOf(problem.place).range, problem.message, severity);
  diagnostic.source = SOURCE;
  diagnostic.code = problem.failure?.seed;
  diagnostic.relatedInformation = problem.related.map(
    ({ place, message }) => new vscode.DiagnosticRelatedInformation(locationOf(place), message),
  );
  return diagnostic;
}
