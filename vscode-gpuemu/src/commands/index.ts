// The commands of the palette, the views and the quick fixes.

import * as vscode from 'vscode';

import type { Daemon } from '../daemon.ts';
import type { Output } from '../output.ts';
import type { Projects } from '../projects.ts';
import { type FailuresTree, OpItem } from '../providers/failuresTree.ts';
import type { HeatMapView } from '../providers/heatMap.ts';
import type { ReportView } from '../providers/reportView.ts';
import type { Runner } from '../runner.ts';
import { chosenFailure, type ChosenFailure, isReference } from './failureReference.ts';
import { adjustTolerance, minimize, reproduce } from './failures.ts';
import { initialiseProject } from './projectSetup.ts';
import { fuzz, runTests } from './runs.ts';
import type { Sanitizer } from './sanitize.ts';

export interface Parts {
  runner: Runner;
  projects: Projects;
  daemon: Daemon;
  output: Output;
  failures: FailuresTree;
  heatMap: HeatMapView;
  report: ReportView;
  sanitizer: Sanitizer;
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { projects, output, daemon } = parts;
  const onFailure =
    (act: (failure: ChosenFailure) => Promise<void>) =>
    async (argument: unknown): Promise<void> => {
      const failure = await chosenFailure(projects, argument);
      if (failure !== undefined) {
        await act(failure);
      }
    };
  const commands: Record<string, (argument: unknown) => Promise<void> | void> = {
    initProject: () => initialiseProject(parts.runner, output),
    startDaemon: () => daemon.start(),
    stopDaemon: () => daemon.stop(),
    runTests: () => runTests(projects, output, false),
    runQuickTests: () => runTests(projects, output, true),
    fuzz: (argument) => fuzzArgument(projects, output, argument),
    reproduce: onFailure((failure) => reproduce(failure, output)),
    minimize: onFailure((failure) => minimize(failure, output)),
    adjustTolerance: onFailure((failure) => adjustTolerance(failure, output)),
    showHeatMap: onFailure((failure) => parts.heatMap.show(failure)),
    openReport: onFailure((failure) => parts.report.show(failure)),
    copySeed: onFailure(async ({ result }) => vscode.env.clipboard.writeText(result.seed)),
    showFailures: async () => {
      await vscode.commands.executeCommand('gpuemu.failures.focus');
    },
    refreshFailures: () => parts.failures.refresh(),
    sanitizeKernel: (argument) => parts.sanitizer.run(argument),
    showOutput: () => output.show(),
    statusBarMenu: () => menu(daemon),
  };
  return Object.entries(commands).map(([name, act]) =>
    vscode.commands.registerCommand(`gpuemu.${name}`, async (argument: unknown) => {
      try {
        await act(argument);
      } catch (error) {
        output.report(error, true);
      }
    }),
  );
}

/** Fuzzing of the op that a failure or an item of the view belongs to, or of one that the user chooses. */
async function fuzzArgument(projects: Projects, output: Output, argument: unknown): Promise<void> {
  if (argument instanceof OpItem) {
    return fuzz(projects, output, argument.project, argument.op);
  }
  if (isReference(argument)) {
    const failure = await chosenFailure(projects, argument);
    return fuzz(projects, output, failure?.project, failure?.result.op);
  }
  return fuzz(projects, output);
}

async function menu(daemon: Daemon): Promise<void> {
  const toggle = daemon.running
    ? { label: '$(debug-stop) Stop the daemon', command: 'gpuemu.stopDaemon' }
    : { label: '$(debug-start) Start the daemon', command: 'gpuemu.startDaemon' };
  const items = [
    { label: '$(run-all) Run tests', command: 'gpuemu.runTests' },
    { label: '$(run) Run quick tests', command: 'gpuemu.runQuickTests' },
    { label: '$(list-tree) Show failures', command: 'gpuemu.showFailures' },
    toggle,
    { label: '$(output) Show output', command: 'gpuemu.showOutput' },
  ];
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: 'gpuemu' });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
