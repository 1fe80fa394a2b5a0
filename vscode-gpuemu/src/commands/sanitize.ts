// The command that launches a kernel with every access checked.

import * as vscode from 'vscode';

import * as commandLine from '../commandLine.ts';
import type { Output } from '../output.ts';
import type { Projects } from '../projects.ts';
import { SOURCE } from '../providers/diagnostics.ts';
import { asLaunchReport } from '../report.ts';
import type { Runner } from '../runner.ts';
import { kernelFile, locatedFindings } from '../sanitizeMapping.ts';
import { withProgress } from './progress.ts';
import { fuzz } from './runs.ts';

const REMEMBERED = 'gpuemu.launches';

export class Sanitizer implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('gpuemu-sanitize');

  constructor(
    private readonly runner: Runner,
    private readonly projects: Projects,
    private readonly output: Output,
    private readonly memory: vscode.Memento,
  ) {}

  dispose(): void {
    this.collection.dispose();
  }

  async run(argument: unknown): Promise<void> {
    const file = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
    if (file === undefined || !/\.(ptx|cu|py)$/.test(file.fsPath)) {
      void vscode.window.showWarningMessage('gpuemu: open a .ptx, .cu or Triton file first.');
      return;
    }
    // What an op's launch table says need not be typed: its cases are launched with every access checked.
    const concerned = this.projects.concerned(file).flatMap(({ project, ops }) => ops.map((op) => ({ project, op })));
    const first = concerned[0];
    if (first !== undefined && (await this.wantsOp(first.op))) {
      await fuzz(this.projects, this.output, first.project, first.op);
      return;
    }
    const kernel = await this.kernel(file);
    const launch = kernel === undefined ? undefined : await this.launch(kernel);
    if (kernel === undefined || launch === undefined) {
      return;
    }
    const folder = this.projects.of(file)?.root ?? vscode.Uri.joinPath(file, '..').fsPath;
    const words = commandLine.sanitize(kernel, launch);
    const answer = await withProgress(`sanitizing ${kernel}`, this.output, (signal) =>
      this.runner.json(words, { folder, signal }),
    );
    if (answer !== undefined) {
      this.show(kernel, answer.value);
    }
  }

  private async wantsOp(op: string): Promise<boolean> {
    const [byOp, byHand] = [`Fuzz the op ${op}, which launches it`, 'Describe one launch'];
    const chosen = await vscode.window.showQuickPick([byOp, byHand], { placeHolder: 'How is the kernel launched?' });
    return chosen === byOp;
  }

  private async kernel(file: vscode.Uri): Promise<string | undefined> {
    if (!file.fsPath.endsWith('.py')) {
      return file.fsPath;
    }
    const editor = vscode.window.activeTextEditor;
    const word = editor?.document.getWordRangeAtPosition(editor.selection.active);
    const value = word && editor?.document.getText(word);
    const name = await vscode.window.showInputBox({ title: 'Sanitize a Triton kernel', prompt: 'Name of the kernel', value });
    return name === undefined || name === '' ? undefined : `${file.fsPath}:${name}`;
  }

  /** The options of the launch, as they were given the last time. */
  private async launch(kernel: string): Promise<string[] | undefined> {
    const remembered = this.memory.get<Record<string, string>>(REMEMBERED, {});
    const typed = await vscode.window.showInputBox({
      title: `Launch ${kernel}`,
      prompt: 'Options, such as --grid 8 --block 128 --arg f32:in.npy --arg f32:out:1024 --arg i32:1024',
      value: remembered[kernel] ?? '--grid 1 --block 128 --arg ',
      ignoreFocusOut: true,
    });
    if (typed === undefined) {
      return undefined;
    }
    await this.memory.update(REMEMBERED, { ...remembered, [kernel]: typed });
    return commandLine.words(typed);
  }

  private show(kernel: string, value: unknown): void {
    const report = asLaunchReport(value);
    const found = locatedFindings(report, kernel);
    this.collection.clear();
    for (const file of new Set(found.map((finding) => finding.file))) {
      const diagnostics = found
        .filter((finding) => finding.file === file)
        .map(({ line, message }) => {
          const range = new vscode.Range(line - 1, 0, line - 1, Number.MAX_SAFE_INTEGER);
          const diagnostic = new vscode.Diagnostic(range, message, vscode.DiagnosticSeverity.Error);
          diagnostic.source = SOURCE;
          diagnostic.code = 'sanitize';
          return diagnostic;
        });
      this.collection.set(vscode.Uri.file(file), diagnostics);
    }
    report.not_checked.forEach((line) => this.output.log(`not checked: ${line}`));
    const name = `${kernelFile(kernel)}, ${report.entry}`;
    if (found.length === 0) {
      void vscode.window.showInformationMessage(`gpuemu: nothing was found in ${name}.`);
    } else {
      const count = found.length + report.more_findings;
      void vscode.window.showWarningMessage(`gpuemu: ${count} ${count === 1 ? 'finding' : 'findings'} in ${name}.`);
    }
  }
}
