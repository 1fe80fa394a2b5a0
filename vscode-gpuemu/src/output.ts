// What the user is told: the output channel, and messages.

import * as vscode from 'vscode';

import { Cancelled } from './process.ts';
import { NotInstalled } from './runner.ts';

export class Output implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel('gpuemu', { log: true });
  private toldOfMissing = false;

  dispose(): void {
    this.channel.dispose();
  }

  log(text: string): void {
    this.channel.info(text);
  }

  show(): void {
    this.channel.show(true);
  }

  /** Writes an error down, and says it where the user has asked for what failed. */
  report(error: unknown, aloud = false): void {
    if (error instanceof Cancelled) {
      return;
    }
    const message = error instanceof Error ? error.message : String(error);
    this.channel.error(message);
    if (error instanceof NotInstalled) {
      void this.missing(error);
    } else if (aloud) {
      void this.failed(message);
    }
  }

  private async failed(message: string): Promise<void> {
    const firstLine = message.split('\n')[0] ?? message;
    if ((await vscode.window.showErrorMessage(`gpuemu: ${firstLine}`, 'Show output')) !== undefined) {
      this.show();
    }
  }

  /** Said once: everything that the extension does would fail in the same way. */
  private async missing(error: NotInstalled): Promise<void> {
    if (this.toldOfMissing) {
      return;
    }
    this.toldOfMissing = true;
    const chosen = await vscode.window.showWarningMessage(`${error.message}.`, 'Set its path');
    if (chosen !== undefined) {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'gpuemu.path');
    }
  }
}
