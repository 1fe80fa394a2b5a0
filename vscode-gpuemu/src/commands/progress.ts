// Work that the user asked for: shown while it lasts, cancelled at a wish.

import * as vscode from 'vscode';

import type { Output } from '../output.ts';
import { signalOf } from '../positions.ts';

export async function withProgress<Result>(
  title: string,
  output: Output,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | undefined> {
  const options = { location: vscode.ProgressLocation.Notification, title: `gpuemu: ${title}`, cancellable: true };
  return vscode.window.withProgress(options, async (_progress, token) => {
    try {
      return await work(signalOf(token));
    } catch (error) {
      output.report(error, true);
      return undefined;
    }
  });
}
