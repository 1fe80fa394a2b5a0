// The status bar: the daemon's state and the last result. A click offers what can be done.

import * as vscode from 'vscode';

import type { Daemon } from '../daemon.ts';
import { Cancelled } from '../process.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import { NotInstalled } from '../runner.ts';
import { onSettingsChanged, settings } from '../settings.ts';

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('gpuemu.status', vscode.StatusBarAlignment.Left, 10);
  private readonly working = new Map<Project, string[]>();
  private error: Error | undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly projects: Projects,
    private readonly daemon: Daemon,
  ) {
    this.item.name = 'gpuemu';
    this.item.command = 'gpuemu.statusBarMenu';
    this.subscriptions = [
      daemon.onDidChange(() => this.show()),
      projects.onDidChangeList(() => this.show()),
      onSettingsChanged('showStatusBar', () => this.show()),
      projects.onDidChange(({ project, change }) => {
        const works = this.working.get(project) ?? [];
        if (change.kind === 'started') {
          this.working.set(project, [...works, change.what]);
        } else if (change.kind === 'stopped') {
          this.working.set(project, works.slice(0, -1));
          this.error = change.error instanceof Cancelled ? undefined : change.error;
          // A command may have started the daemon.
          void daemon.refresh();
        }
        this.show();
      }),
    ];
    this.show();
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.item.dispose();
  }

  private show(): void {
    if (!settings.showStatusBar() || this.projects.all().length === 0) {
      this.item.hide();
      return;
    }
    const { icon, words } = this.result();
    const stopped = this.daemon.state !== undefined && !this.daemon.running;
    this.item.text = `$(${icon}) gpuemu${words === '' ? '' : `: ${words}`}${stopped ? ' $(debug-disconnect) daemon stopped' : ''}`;
    this.item.accessibilityInformation = {
      label: `gpuemu ${words}, daemon ${this.daemon.running ? 'running' : 'stopped'}`,
    };
    this.item.tooltip = this.tooltip(words);
    const wrong = icon === 'error' || icon === 'warning';
    this.item.backgroundColor = wrong ? new vscode.ThemeColor(`statusBarItem.${icon}Background`) : undefined;
    this.item.show();
  }

  /** The last result of all ops. */
  private result(): { icon: string; words: string } {
    const works = [...this.working.values()].flat();
    const work = works[works.length - 1];
    if (work !== undefined) {
      return { icon: 'sync~spin', words: work };
    }
    const error = this.error ?? this.daemon.error;
    if (error instanceof NotInstalled) {
      return { icon: 'warning', words: 'not installed' };
    }
    const states = this.projects.all().flatMap((project) => project.state.ops());
    const failing = states.filter((state) => state.failures.length > 0 || state.report?.status === 'failed');
    if (failing.length > 0) {
      return { icon: 'error', words: failing.length === 1 ? '1 op fails' : `${failing.length} ops fail` };
    }
    const notJudged = states.filter((state) => state.report?.status === 'error' || state.report?.status === 'unfinished');
    if (notJudged.length > 0 || error !== undefined) {
      return { icon: 'warning', words: 'not judged' };
    }
    return states.some((state) => state.report !== undefined)
      ? { icon: 'pass-filled', words: 'passed' }
      : { icon: 'beaker', words: '' };
  }

  private tooltip(words: string): vscode.MarkdownString {
    const text = new vscode.MarkdownString();
    text.appendText(words === '' ? 'gpuemu: nothing was run yet' : `gpuemu: ${words}`);
    const status = this.daemon.state?.status;
    if (status !== undefined) {
      text.appendText(
        `\nthe daemon runs as process ${status.pid}, version ${status.version}, ${status.stored.failures} failures stored`,
      );
    } else if (this.daemon.state !== undefined) {
      text.appendText('\nthe daemon does not run; it is started when it is needed');
    }
    const error = this.error ?? this.daemon.error;
    if (error !== undefined) {
      text.appendText(`\n${error.message}`);
    }
    return text;
  }
}
