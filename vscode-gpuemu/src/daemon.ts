// Whether the daemon runs. Its socket's folder is watched, and now and then it is asked.

import { watch, type FSWatcher } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

import * as commandLine from './commandLine.ts';
import { asDaemonState, type DaemonState } from './report.ts';
import type { Runner } from './runner.ts';

/** Milliseconds between questions, for what cannot be watched: a daemon that was killed leaves its socket behind. */
const INTERVAL = 15_000;

export class Daemon implements vscode.Disposable {
  private current: DaemonState | undefined;
  private problem: Error | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private watcher: FSWatcher | undefined;
  private watched: string | undefined;
  private asking: Promise<void> | undefined;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly runner: Runner,
    private readonly folder: () => string,
  ) {
    this.timer = setInterval(() => {
      if (vscode.window.state.focused) {
        void this.refresh();
      }
    }, INTERVAL);
  }

  dispose(): void {
    clearInterval(this.timer);
    this.watcher?.close();
    this.changed.dispose();
  }

  /** Its state, once it is known. */
  get state(): DaemonState | undefined {
    return this.current;
  }

  /** Why nothing is known. */
  get error(): Error | undefined {
    return this.problem;
  }

  get running(): boolean {
    return this.current?.running ?? false;
  }

  async start(): Promise<void> {
    await this.runner.quietly(['daemon', 'start', '--background'], { folder: this.folder() });
    await this.refresh();
  }

  async stop(): Promise<void> {
    await this.runner.quietly(['daemon', 'stop'], { folder: this.folder() });
    await this.refresh();
  }

  /** Asks for its state; several at once ask once. */
  refresh(): Promise<void> {
    this.asking ??= this.ask().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  private async ask(): Promise<void> {
    const before = this.running;
    try {
      const answer = await this.runner.json(commandLine.daemonStatus(), { folder: this.folder() });
      this.current = asDaemonState(answer.value);
      this.problem = undefined;
      this.watchSocket(this.current.socket);
    } catch (error) {
      this.current = undefined;
      this.problem = error as Error;
    }
    if (before !== this.running || this.problem !== undefined || this.current?.running) {
      this.changed.fire();
    }
  }

  private watchSocket(socket: string): void {
    if (this.watched === socket && this.watcher !== undefined) {
      return;
    }
    this.watcher?.close();
    this.watcher = undefined;
    try {
      const name = path.basename(socket);
      this.watcher = watch(path.dirname(socket), (_event, file) => {
        if (file === name) {
          void this.refresh();
        }
      });
      this.watcher.on('error', () => {
        this.watcher?.close();
        this.watcher = undefined;
      });
      this.watched = socket;
    } catch {
      // The folder is not there before the daemon has run for the first time.
      this.watcher = undefined;
    }
  }
}
