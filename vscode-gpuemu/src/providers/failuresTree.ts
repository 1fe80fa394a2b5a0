// The Failures view: ops, and below them their stored failures.

import * as vscode from 'vscode';

import type { FailureReference } from '../commands/failureReference.ts';
import { caseText, smallestText, what } from '../problemMapping.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import type { ValidationResult } from '../report.ts';

export class OpItem extends vscode.TreeItem {
  constructor(
    readonly project: Project,
    readonly op: string,
    readonly failures: readonly ValidationResult[],
    several: boolean,
  ) {
    super(several ? `${project.name}: ${op}` : op, vscode.TreeItemCollapsibleState.Expanded);
    this.id = `${project.file.toString()} ${op}`;
    this.description = failures.length === 1 ? '1 failure' : `${failures.length} failures`;
    this.contextValue = 'op';
    this.iconPath = new vscode.ThemeIcon('symbol-function');
  }
}

class FailureItem extends vscode.TreeItem implements FailureReference {
  readonly project: string;

  constructor(
    project: Project,
    readonly result: ValidationResult,
  ) {
    super(result.minimized ? `${result.dtype}, smallest` : result.dtype, vscode.TreeItemCollapsibleState.None);
    this.project = project.file.toString();
    this.id = `${this.project} ${result.op} ${result.seed} ${result.minimized ? 'minimized' : ''} ${result.time}`;
    const finding = result.failures[0];
    this.description = `${finding?.check ?? result.outcome}, ${result.sizes}, seed ${result.seed}`;
    const open = project.state.failure(result);
    this.iconPath = ICONS[project.state.standing(result)];
    this.contextValue = result.client_side ? 'clientFailure' : 'failure';
    const lines = [caseText(result), ...result.failures.map(what)];
    if (open?.smallest !== undefined) {
      lines.push(`smallest failing case: ${smallestText(open.smallest.result, open.smallest.neighbour)}`);
    }
    this.tooltip = [...lines, result.replay].join('\n');
    this.command = { title: 'Show where it is wrong', command: 'gpuemu.showHeatMap', arguments: [this] };
  }
}

const ICONS = {
  open: new vscode.ThemeIcon('error', new vscode.ThemeColor('testing.iconFailed')),
  mended: new vscode.ThemeIcon('pass', new vscode.ThemeColor('testing.iconPassed')),
  // Of a failure that was not run since the window was opened, nothing is known.
  unknown: new vscode.ThemeIcon('circle-outline'),
};

export class FailuresTree implements vscode.TreeDataProvider<vscode.TreeItem>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly projects: Projects,
    private readonly report: (error: unknown) => void,
  ) {
    this.subscriptions = [
      projects.onDidChange(({ change }) => {
        if (change.kind === 'run' || change.kind === 'cases') {
          this.refresh();
        }
      }),
      projects.onDidChangeList(() => this.refresh()),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.changed.dispose();
  }

  refresh(): void {
    this.changed.fire();
  }

  getTreeItem(item: vscode.TreeItem): vscode.TreeItem {
    return item;
  }

  async getChildren(item?: vscode.TreeItem): Promise<vscode.TreeItem[]> {
    if (item instanceof OpItem) {
      return item.failures.map((result) => new FailureItem(item.project, result));
    }
    const projects = this.projects.all();
    const items = await Promise.all(projects.map((project) => this.ops(project, projects.length > 1)));
    return items.flat();
  }

  private async ops(project: Project, several: boolean): Promise<OpItem[]> {
    try {
      const failures = await project.failures();
      const names = [...new Set(failures.map((failure) => failure.op))].sort();
      return names.map((op) => new OpItem(project, op, failures.filter((one) => one.op === op), several));
    } catch (error) {
      this.report(error);
      return [];
    }
  }
}
