// Places of gpuemu as places of the editor.

import { readFileSync } from 'node:fs';
import * as vscode from 'vscode';

import type { Place } from './report.ts';
import { editorRange } from './textPosition.ts';

/** The text of a file: as the editor has it, or as it was saved. */
function textOf(file: string): string {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.fsPath === file);
  if (open !== undefined) {
    return open.getText();
  }
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

export function rangeIn(text: string, range: Place['range']): vscode.Range {
  const { startLine, startCharacter, endLine, endCharacter } = editorRange(range, text);
  return new vscode.Range(startLine, startCharacter, endLine, endCharacter);
}

export function locationOf(place: Place): vscode.Location {
  return new vscode.Location(vscode.Uri.file(place.file), rangeIn(textOf(place.file), place.range));
}

/** An abort signal that follows the user's wish to cancel. */
export function signalOf(token: vscode.CancellationToken): AbortSignal {
  const controller = new AbortController();
  if (token.isCancellationRequested) {
    controller.abort();
  }
  token.onCancellationRequested(() => controller.abort());
  return controller.signal;
}
