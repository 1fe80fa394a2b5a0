// The webview with the heat map of a failure.

import * as vscode from 'vscode';

import type { ChosenFailure } from '../commands/failureReference.ts';
import { withProgress } from '../commands/progress.ts';
import { heatMapPage } from '../heatMapPage.ts';
import type { Output } from '../output.ts';

export class HeatMapView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  constructor(private readonly output: Output) {}

  dispose(): void {
    this.panel?.dispose();
  }

  async show({ project, result }: ChosenFailure): Promise<void> {
    const title = `looking at seed ${result.seed} of ${result.op}`;
    const illustration = await withProgress(title, this.output, (signal) => project.picture(result, signal));
    if (illustration === undefined) {
      return;
    }
    const panel = this.opened();
    panel.title = `${result.op}: where it is wrong`;
    panel.webview.html = heatMapPage(illustration);
  }

  private opened(): vscode.WebviewPanel {
    if (this.panel === undefined) {
      const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      this.panel = vscode.window.createWebviewPanel('gpuemu.heatMap', 'Heat map', column, {
        enableScripts: false,
        localResourceRoots: [],
      });
      this.panel.onDidDispose(() => {
        this.panel = undefined;
      });
    } else {
      this.panel.reveal(undefined, true);
    }
    return this.panel;
  }
}
