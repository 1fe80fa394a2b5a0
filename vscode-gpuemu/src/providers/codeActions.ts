// Quick fixes of a failure: reproduce, minimise, fuzz, adjust the tolerance, look at it.

import * as vscode from 'vscode';

import type { FailureReference } from '../commands/failureReference.ts';
import { type DiagnosticManager, SOURCE } from './diagnostics.ts';

interface Fix {
  title: string;
  command: string;
}

export class FailureActions implements vscode.CodeActionProvider {
  static readonly kinds = [vscode.CodeActionKind.QuickFix];

  constructor(private readonly diagnostics: DiagnosticManager) {}

  provideCodeActions(
    document: vscode.TextDocument,
    _range: vscode.Range,
    context: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    return context.diagnostics
      .filter((diagnostic) => diagnostic.source === SOURCE)
      .flatMap((diagnostic) => this.actions(document.uri, diagnostic));
  }

  private actions(file: vscode.Uri, diagnostic: vscode.Diagnostic): vscode.CodeAction[] {
    const found = this.diagnostics.failureOf(file, diagnostic);
    const result = found?.problem.failure;
    if (found === undefined || result === undefined) {
      return [];
    }
    const reference: FailureReference = { project: found.project.file.toString(), result };
    const { op, dtype, seed } = result;
    const fixes: Fix[] = [
      { title: `Minimise this failure of ${op} (seed ${seed})`, command: 'gpuemu.minimize' },
      { title: `Reproduce this failure of ${op} (seed ${seed})`, command: 'gpuemu.reproduce' },
      { title: `Fuzz ${op}`, command: 'gpuemu.fuzz' },
      { title: `Show where ${op} is wrong (heat map)`, command: 'gpuemu.showHeatMap' },
      { title: `Open the report at this failure of ${op}`, command: 'gpuemu.openReport' },
    ];
    if (result.failures.every((finding) => finding.check === 'value')) {
      fixes.push({ title: `Adjust the tolerance of ${op} in ${dtype}…`, command: 'gpuemu.adjustTolerance' });
    }
    return fixes.map(({ title, command }) => {
      const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
      action.diagnostics = [diagnostic];
      action.command = { title, command, arguments: [reference] };
      return action;
    });
  }
}
