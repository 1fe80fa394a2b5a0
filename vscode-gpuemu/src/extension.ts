// Activation: what needs no program at once, everything else once the workspace is trusted.

import * as vscode from 'vscode';

import { findBinary } from './binary.ts';
import { registerCommands } from './commands/index.ts';
import { Sanitizer } from './commands/sanitize.ts';
import { Daemon } from './daemon.ts';
import { Output } from './output.ts';
import { Projects } from './projects.ts';
import { FailureActions } from './providers/codeActions.ts';
import { CONFIGURATION, ConfigCompletion } from './providers/completion.ts';
import { ConfigValidator } from './providers/configValidator.ts';
import { DiagnosticManager } from './providers/diagnostics.ts';
import { FailuresTree } from './providers/failuresTree.ts';
import { HeatMapView } from './providers/heatMap.ts';
import { ReportView } from './providers/reportView.ts';
import { StatusBar } from './providers/statusBar.ts';
import { TestExplorer } from './providers/testController.ts';
import { ValidationWatcher } from './providers/validationWatcher.ts';
import { Runner } from './runner.ts';
import { settings } from './settings.ts';

export function activate(context: vscode.ExtensionContext): void {
  const schema = vscode.Uri.joinPath(context.extensionUri, 'schemas', 'gpuemu.schema.json').fsPath;
  const completion = new ConfigCompletion(schema);
  context.subscriptions.push(
    vscode.languages.registerCompletionItemProvider(CONFIGURATION, completion, '[', '"', '.', '=', ' '),
    vscode.languages.registerHoverProvider(CONFIGURATION, completion),
  );
  if (vscode.workspace.isTrusted) {
    start(context);
  } else {
    // In restricted mode nothing is run: neither gpuemu nor, through it, code of the workspace.
    context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => start(context)));
  }
}

function start(context: vscode.ExtensionContext): void {
  const output = new Output();
  const report = (error: unknown): void => output.report(error);
  const runner: Runner = new Runner({
    trusted: () => vscode.workspace.isTrusted,
    find: (folder) =>
      findBinary({
        setting: settings.path(vscode.Uri.file(folder)),
        folders: [folder, ...workspaceFolders()],
        variables: process.env,
        platform: process.platform,
      }),
    mayStartDaemon: () => settings.autoStartDaemon() || daemon.running,
    variables: () => process.env,
    log: (text) => output.log(text),
  });
  const projects = new Projects(runner);
  const daemon: Daemon = new Daemon(runner, () => projects.all()[0]?.root ?? workspaceFolders()[0] ?? process.cwd());
  const diagnostics = new DiagnosticManager(projects);
  const config = new ConfigValidator(projects, report);
  const watcher = new ValidationWatcher(projects, config, report);
  const tests = new TestExplorer(projects, watcher, report);
  const failures = new FailuresTree(projects, report);
  const heatMap = new HeatMapView(output);
  const reportView = new ReportView(context.storageUri ?? context.globalStorageUri, output);
  const sanitizer = new Sanitizer(runner, projects, output, context.workspaceState);
  const statusBar = new StatusBar(projects, daemon);
  const parts = { runner, projects, daemon, output, failures, heatMap, report: reportView, sanitizer };
  context.subscriptions.push(
    output,
    projects,
    daemon,
    diagnostics,
    config,
    watcher,
    tests,
    failures,
    heatMap,
    reportView,
    sanitizer,
    statusBar,
    vscode.window.registerTreeDataProvider('gpuemu.failures', failures),
    vscode.languages.registerCodeActionsProvider({ scheme: 'file' }, new FailureActions(diagnostics), {
      providedCodeActionKinds: FailureActions.kinds,
    }),
    ...registerCommands(parts),
  );
  void begin(projects, daemon, output);
}

/** The first look at the workspace. */
async function begin(projects: Projects, daemon: Daemon, output: Output): Promise<void> {
  try {
    await projects.find();
    await daemon.refresh();
    if (projects.all().length > 0 && settings.autoStartDaemon() && daemon.state?.running === false) {
      await daemon.start();
    }
  } catch (error) {
    output.report(error);
  }
}

function workspaceFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}
