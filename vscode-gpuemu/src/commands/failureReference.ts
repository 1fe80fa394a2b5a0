// A failure as commands are given it.

import * as vscode from 'vscode';

import type { Project } from '../project.ts';
import type { Projects } from '../projects.ts';
import { caseText } from '../problemMapping.ts';
import type { ValidationResult } from '../report.ts';

export interface FailureReference {
  /** The project's configuration file. */
  project: string;
  result: ValidationResult;
}

export interface ChosenFailure {
  project: Project;
  result: ValidationResult;
}

export function isReference(value: unknown): value is FailureReference {
  return typeof value === 'object' && value !== null && 'project' in value && 'result' in value;
}

/** The failure that a command was given, or one that the user chooses among those that are stored. */
export async function chosenFailure(projects: Projects, argument: unknown): Promise<ChosenFailure | undefined> {
  if (isReference(argument)) {
    const project = projects.all().find((known) => known.file.toString() === argument.project);
    return project && { project, result: argument.result };
  }
  const stored = await Promise.all(
    projects.all().map(async (project) => (await project.failures()).map((result) => ({ project, result }))),
  );
  const all = stored.flat();
  if (all.length === 0) {
    void vscode.window.showInformationMessage('No failure is stored.');
    return undefined;
  }
  const items = all.map((failure) => ({
    label: failure.result.op,
    description: failure.result.failures[0]?.check,
    detail: caseText(failure.result),
    failure,
  }));
  const placeHolder = 'Which failure?';
  return (await vscode.window.showQuickPick(items, { placeHolder, matchOnDetail: true }))?.failure;
}
