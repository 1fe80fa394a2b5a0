// The projects of a workspace: every folder in it that has a gpuemu.toml.

import * as path from 'node:path';
import * as vscode from 'vscode';

import { Project, type Change } from './project.ts';
import type { Runner } from './runner.ts';

const CONFIGURATION = '**/gpuemu.toml';
const LEFT_OUT = '**/{node_modules,.venv,venv,target,.git}/**';

export class Projects implements vscode.Disposable {
  private readonly known = new Map<string, Project>();
  private readonly subscriptions = new Map<string, vscode.Disposable>();
  private readonly changed = new vscode.EventEmitter<{ project: Project; change: Change }>();
  /** Something changed in one of them. */
  readonly onDidChange = this.changed.event;
  private readonly listChanged = new vscode.EventEmitter<void>();
  /** A project came or went. */
  readonly onDidChangeList = this.listChanged.event;
  private readonly watcher = vscode.workspace.createFileSystemWatcher(CONFIGURATION, false, true, false);

  constructor(private readonly runner: Runner) {
    this.watcher.onDidCreate((file) => this.add(file));
    this.watcher.onDidDelete((file) => this.remove(file));
  }

  dispose(): void {
    this.watcher.dispose();
    vscode.Disposable.from(...this.subscriptions.values()).dispose();
    this.known.forEach((project) => project.dispose());
    this.changed.dispose();
    this.listChanged.dispose();
  }

  /** Looks for all of them. */
  async find(): Promise<void> {
    const files = await vscode.workspace.findFiles(CONFIGURATION, LEFT_OUT);
    files.forEach((file) => this.add(file));
  }

  all(): Project[] {
    return [...this.known.values()];
  }

  /** The project that a file belongs to: the nearest above it. */
  of(file: vscode.Uri): Project | undefined {
    const above = this.all().filter((project) => file.fsPath.startsWith(project.root + path.sep));
    return above.sort((left, right) => right.root.length - left.root.length)[0];
  }

  /** The project whose configuration or op files a file is. */
  concerned(file: vscode.Uri): { project: Project; ops: string[] }[] {
    return this.all().flatMap((project) => {
      const all = project.config?.ops ?? [];
      const isConfiguration = file.fsPath === project.file.fsPath;
      const kernels = (project.config?.kernels ?? []).some((kernel) => kernel.files.includes(file.fsPath));
      const ops = all.filter((op) => isConfiguration || op.files.includes(file.fsPath)).map((op) => op.name);
      return isConfiguration || kernels || ops.length > 0 ? [{ project, ops }] : [];
    });
  }

  private add(file: vscode.Uri): void {
    const key = file.toString();
    if (file.scheme !== 'file' || this.known.has(key)) {
      return;
    }
    const project = new Project(file, this.runner);
    this.known.set(key, project);
    this.subscriptions.set(
      key,
      project.onDidChange((change) => this.changed.fire({ project, change })),
    );
    this.listChanged.fire();
  }

  private remove(file: vscode.Uri): void {
    const key = file.toString();
    this.subscriptions.get(key)?.dispose();
    this.subscriptions.delete(key);
    this.known.get(key)?.dispose();
    this.known.delete(key);
    this.listChanged.fire();
  }
}
