// Errors of gpuemu.toml, as the command line finds them, underlined while one types.

import * as vscode from 'vscode';

import { Debounce } from '../debounce.ts';
import { rangeIn } from '../positions.ts';
import { Cancelled } from '../process.ts';
import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import type { CheckedConfig, ConfigProblem } from '../report.ts';
import { settings } from '../settings.ts';
import { SOURCE } from './diagnostics.ts';

export class ConfigValidator implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('gpuemu-config');
  private readonly debounce: Debounce<vscode.TextDocument>;
  private readonly subscriptions: vscode.Disposable[];
  /** The newest question for each file: answers to older ones no longer count. */
  private readonly asked = new Map<string, AbortController>();

  constructor(
    private readonly projects: Projects,
    private readonly report: (error: unknown) => void,
  ) {
    this.debounce = new Debounce(
      () => settings.debounce(),
      (documents) => documents.forEach((document) => void this.validate(document)),
    );
    this.subscriptions = [
      vscode.workspace.onDidOpenTextDocument((document) => void this.validate(document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (this.projectOf(document) !== undefined) {
          this.debounce.add(document);
        }
      }),
      projects.onDidChangeList(() => void this.validateAll()),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.debounce.dispose();
    this.collection.dispose();
  }

  private projectOf(document: vscode.TextDocument): Project | undefined {
    return this.projects.all().find((project) => project.file.toString() === document.uri.toString());
  }

  /** Looks at the configuration of every project. */
  async validateAll(): Promise<void> {
    const open = vscode.workspace.textDocuments;
    await Promise.all(
      this.projects.all().map(async (project) => {
        const document = open.find((known) => known.uri.toString() === project.file.toString());
        await this.check(project, document?.isDirty ? document.getText() : undefined);
      }),
    );
  }

  /** Looks at a document, if it is a project's configuration. Returns whether it is valid. */
  async validate(document: vscode.TextDocument): Promise<boolean> {
    const project = this.projectOf(document);
    return project !== undefined && (await this.check(project, document.getText()));
  }

  private async check(project: Project, text: string | undefined): Promise<boolean> {
    const key = project.file.toString();
    this.asked.get(key)?.abort();
    const asking = new AbortController();
    this.asked.set(key, asking);
    try {
      const checked = await project.check(text, asking.signal);
      if (!asking.signal.aborted) {
        this.show(project, checked);
      }
      return checked.valid;
    } catch (error) {
      if (!(error instanceof Cancelled)) {
        this.report(error);
      }
      return false;
    }
  }

  private show(project: Project, checked: CheckedConfig): void {
    const open = vscode.workspace.textDocuments.find((known) => known.uri.toString() === project.file.toString());
    const own = checked.problems.filter((problem) => problem.file === project.file.fsPath);
    const others = checked.problems.filter((problem) => problem.file !== project.file.fsPath);
    void this.textOf(project, open).then((text) => {
      const diagnostics = own.map((problem) => diagnosticOf(problem, text));
      // What is wrong in a file of the user's is shown at the start of the project's.
      const elsewhere = others.map((problem) =>
        diagnosticOf({ ...problem, range: null, message: `${problem.file}: ${problem.message}` }, text),
      );
      this.collection.set(project.file, [...diagnostics, ...elsewhere]);
    });
  }

  private async textOf(project: Project, open: vscode.TextDocument | undefined): Promise<string> {
    return open?.getText() ?? new TextDecoder().decode(await vscode.workspace.fs.readFile(project.file));
  }
}

function diagnosticOf(problem: ConfigProblem, text: string): vscode.Diagnostic {
  const start = { line: 1, column: 1 };
  const range = rangeIn(text, problem.range ?? { start, end: start });
  const message = problem.hint === null ? problem.message : `${problem.message}\nhint: ${problem.hint}`;
  const diagnostic = new vscode.Diagnostic(range, message, vscode.DiagnosticSeverity.Error);
  diagnostic.source = SOURCE;
  return diagnostic;
}
