// Commands that run ops: tests, quick tests, fuzzing.

import * as vscode from 'vscode';

import type { Output } from '../output.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import type { RunReport } from '../report.ts';
import { settings } from '../settings.ts';
import { withProgress } from './progress.ts';

/** One line on a run. */
export function summary(report: RunReport): string {
  const failing = report.ops.filter((op) => op.status === 'failed').map((op) => op.op);
  const notJudged = report.ops.filter((op) => op.status === 'error' || op.status === 'unfinished').map((op) => op.op);
  const cases = report.ops.reduce((sum, op) => sum + op.cases, 0);
  const parts = [
    failing.length > 0 ? `${failing.join(', ')} failed` : '',
    notJudged.length > 0 ? `${notJudged.join(', ')} could not be judged` : '',
  ].filter((part) => part !== '');
  const words = parts.length > 0 ? parts.join('; ') : `${report.ops.length} ops passed`;
  return `${words} (${cases} cases, ${report.seconds.toFixed(1)} s)`;
}

function tell(report: RunReport, output: Output): void {
  const words = summary(report);
  output.log(words);
  const failed = report.ops.some((op) => op.status !== 'passed' && op.status !== 'expected_failure');
  if (failed) {
    void vscode.window.showWarningMessage(`gpuemu: ${words}`, 'Show problems').then((chosen) => {
      if (chosen !== undefined) {
        void vscode.commands.executeCommand('workbench.actions.view.problems');
      }
    });
  } else {
    void vscode.window.showInformationMessage(`gpuemu: ${words}`);
  }
}

export async function runTests(projects: Projects, output: Output, quick: boolean): Promise<void> {
  await vscode.workspace.saveAll(false);
  for (const project of projects.all()) {
    const title = `${quick ? 'quick tests' : 'tests'} of ${project.name}`;
    const report = await withProgress(title, output, (signal) => project.test({ quick }, signal));
    if (report !== undefined) {
      tell(report, output);
    }
  }
}

/** Fuzzes one op, or one that the user chooses. */
export async function fuzz(projects: Projects, output: Output, project?: Project, op?: string): Promise<void> {
  let chosen = project !== undefined && op !== undefined ? { project, op } : undefined;
  if (chosen === undefined) {
    const items = projects.all().flatMap((known) =>
      (known.config?.ops ?? []).map(({ name }) => ({ label: name, description: known.name, project: known, op: name })),
    );
    chosen = await vscode.window.showQuickPick(items, { placeHolder: 'Which op?' });
  }
  if (chosen === undefined) {
    return;
  }
  const { project: owner, op: name } = chosen;
  await vscode.workspace.saveAll(false);
  const iterations = settings.fuzzIterations();
  const report = await withProgress(`fuzzing ${name}, ${iterations} cases`, output, (signal) =>
    owner.fuzz([name], iterations, signal),
  );
  if (report !== undefined) {
    tell(report, output);
  }
}
