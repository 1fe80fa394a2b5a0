// The HTML report in a webview, at one failure.

import { mkdir, readFile } from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';

import type { ChosenFailure } from '../commands/failureReference.ts';
import { withProgress } from '../commands/progress.ts';
import type { Output } from '../output.ts';
import { pageAt } from '../reportPage.ts';

export class ReportView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  constructor(
    private readonly storage: vscode.Uri,
    private readonly output: Output,
  ) {}

  dispose(): void {
    this.panel?.dispose();
  }

  async show({ project, result }: ChosenFailure): Promise<void> {
    const file = path.join(this.storage.fsPath, 'report.html');
    const page = await withProgress('writing the report', this.output, async (signal) => {
      await mkdir(this.storage.fsPath, { recursive: true });
      await project.writeReport(file, signal);
      return readFile(file, 'utf8');
    });
    if (page === undefined) {
      return;
    }
    this.panel ??= this.created();
    this.panel.title = `Report on ${project.name}`;
    this.panel.webview.html = pageAt(page, result);
    this.panel.reveal(undefined, true);
  }

  private created(): vscode.WebviewPanel {
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    // The page is of gpuemu's own making and loads nothing; its scripts open and close cards.
    const panel = vscode.window.createWebviewPanel('gpuemu.report', 'Report', column, {
      enableScripts: true,
      localResourceRoots: [],
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    return panel;
  }
}
