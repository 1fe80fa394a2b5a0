// Commands on one failure: reproduce, minimise, adjust the tolerance.

import * as vscode from 'vscode';

import type { Output } from '../output.ts';
import { caseText, short, smallestText, what } from '../problemMapping.ts';
import { difference } from '../textPosition.ts';
import { parseTolerance, suggestedTolerance } from '../tolerance.ts';
import type { ChosenFailure } from './failureReference.ts';
import { withProgress } from './progress.ts';

export async function reproduce({ project, result }: ChosenFailure, output: Output): Promise<void> {
  const again = await withProgress(`reproducing seed ${result.seed}`, output, (signal) => project.reproduce(result, signal));
  if (again === undefined) {
    return;
  }
  output.log([`${again.op}: ${again.outcome}`, caseText(again), ...again.failures.map(what)].join('\n  '));
  const words = `gpuemu: seed ${again.seed} of ${again.op}`;
  if (again.outcome === 'failed') {
    void vscode.window.showWarningMessage(`${words} still fails.`);
  } else {
    void vscode.window.showInformationMessage(`${words}: ${again.outcome}.`);
  }
}

export async function minimize({ project, result }: ChosenFailure, output: Output): Promise<void> {
  const found = await withProgress(`minimising seed ${result.seed}`, output, (signal) => project.minimize(result, signal));
  if (found === undefined) {
    return;
  }
  const words = smallestText(found.minimized, found.neighbour);
  output.log(`${result.op}: smallest failing case: ${words}, ${found.runs} runs`);
  void vscode.window.showInformationMessage(`gpuemu: ${result.op} in ${words}`);
}

/** Edits the tolerance in the configuration, unsaved: it is the user who accepts it. */
export async function adjustTolerance({ project, result }: ChosenFailure, output: Output): Promise<void> {
  const { op, dtype } = result;
  const checked = project.config?.ops.find((known) => known.name === op);
  const open = project.state.op(op).failures.map((failure) => failure.result).filter((known) => known.dtype === dtype);
  const suggestion = suggestedTolerance(open.length > 0 ? open : [result], checked?.tolerances[dtype]);
  const judged = checked?.tolerance === 'bound' ? 'It is judged by its rigorous bound now. ' : '';
  const given = await vscode.window.showInputBox({
    title: `Tolerance of ${op} in ${dtype}`,
    prompt: `${judged}atol, rtol of |actual − expected| ≤ atol + rtol·|expected|`,
    value: suggestion && `atol = ${short(suggestion.atol)}, rtol = ${short(suggestion.rtol)}`,
    validateInput: (text) => {
      const parsed = parseTolerance(text);
      return typeof parsed === 'string' ? parsed : undefined;
    },
  });
  const pair = given === undefined ? undefined : parseTolerance(given);
  if (pair === undefined || typeof pair === 'string') {
    return;
  }
  try {
    const document = await vscode.workspace.openTextDocument(project.file);
    const before = document.getText();
    const after = await project.withTolerance(before, op, dtype, String(pair.atol), String(pair.rtol));
    const { start, end, text } = difference(before, after);
    const edit = new vscode.WorkspaceEdit();
    const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
    edit.replace(project.file, range, text);
    await vscode.workspace.applyEdit(edit);
    const editor = await vscode.window.showTextDocument(document);
    editor.revealRange(range);
  } catch (error) {
    output.report(error, true);
  }
}
