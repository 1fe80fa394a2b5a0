// The command that starts a project.

import * as vscode from 'vscode';

import * as commandLine from '../commandLine.ts';
import type { Output } from '../output.ts';
import type { Runner } from '../runner.ts';
import { withProgress } from './progress.ts';

const FRAMEWORKS = ['numpy', 'pytorch', 'jax', 'tensorflow'];

async function chosenFolder(): Promise<string | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length > 1) {
    return (await vscode.window.showWorkspaceFolderPick())?.uri.fsPath;
  }
  const only = folders[0];
  if (only === undefined) {
    void vscode.window.showWarningMessage('gpuemu: open a folder first.');
  }
  return only?.uri.fsPath;
}

export async function initialiseProject(runner: Runner, output: Output): Promise<void> {
  const folder = await chosenFolder();
  if (folder === undefined) {
    return;
  }
  const framework = await vscode.window.showQuickPick(FRAMEWORKS, { placeHolder: 'Whose arrays do the kernels take?' });
  if (framework === undefined) {
    return;
  }
  const [bare, examples] = ['Only gpuemu.toml', 'With two example ops'];
  const chosen = await vscode.window.showQuickPick([examples, bare], { placeHolder: 'What is written?' });
  if (chosen === undefined) {
    return;
  }
  const words = commandLine.initialise(folder, framework, chosen === examples);
  const done = await withProgress('writing a project', output, () => runner.json(words, { folder }));
  if (done !== undefined) {
    const file = vscode.Uri.joinPath(vscode.Uri.file(folder), 'gpuemu.toml');
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file));
  }
}
