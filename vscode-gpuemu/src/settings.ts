// The settings, read when they are needed: a change counts at once.

import * as vscode from 'vscode';

const SECTION = 'gpuemu';

function setting<Value>(name: string, fallback: Value, scope?: vscode.Uri): Value {
  return vscode.workspace.getConfiguration(SECTION, scope).get<Value>(name, fallback);
}

export const settings = {
  path: (scope?: vscode.Uri): string => setting('path', '', scope).trim(),
  autoStartDaemon: (): boolean => setting('autoStartDaemon', true),
  showStatusBar: (): boolean => setting('showStatusBar', true),
  validateOnSave: (): boolean => setting('validateOnSave', true),
  validateOnSaveMode: (): 'quick' | 'thorough' => setting('validateOnSaveMode', 'quick'),
  debounce: (): number => Math.max(0, setting('debounce', 500)),
  fuzzIterations: (): number => Math.max(1, Math.floor(setting('fuzzIterations', 500))),
};

export function onSettingsChanged(name: string, act: () => void): vscode.Disposable {
  return vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration(`${SECTION}.${name}`)) {
      act();
    }
  });
}
