// Where the program is: the setting, a virtual environment of the workspace, the search path.

import { accessSync, constants, statSync } from 'node:fs';
import * as path from 'node:path';

export interface Search {
  /** The setting; empty where nothing is set. */
  setting: string;
  /** Folders of the workspace, the project's first. */
  folders: readonly string[];
  variables: NodeJS.ProcessEnv;
  platform: NodeJS.Platform;
}

/** The program, or the places where it was looked for. */
export type Found = { program: string } | { searched: string[] };

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

export function findBinary(search: Search, exists: (file: string) => boolean = isProgram): Found {
  const windows = search.platform === 'win32';
  const name = windows ? 'gpuemu.exe' : 'gpuemu';
  if (search.setting !== '') {
    // What is set is meant: another one that happens to be there would only confuse.
    const set = expand(search.setting, search);
    return exists(set) ? { program: set } : { searched: [set] };
  }
  const programs = windows ? 'Scripts' : 'bin';
  const environments = search.folders.flatMap((folder) => ['.venv', 'venv'].map((name) => path.join(folder, name)));
  const active = search.variables['VIRTUAL_ENV'];
  const local = [...environments, ...(active ? [active] : [])].map((folder) => path.join(folder, programs));
  const searchPath = (search.variables['PATH'] ?? '').split(windows ? ';' : ':').filter((folder) => folder !== '');
  const candidates = [...local, ...searchPath].map((folder) => path.join(folder, name));
  const program = candidates.find(exists);
  return program === undefined ? { searched: candidates } : { program };
}

/** A setting with `~` and `${workspaceFolder}` replaced; a relative one is in the project's folder. */
function expand(setting: string, search: Search): string {
  const folder = search.folders[0] ?? '';
  const home = search.variables['HOME'] ?? search.variables['USERPROFILE'] ?? '';
  const whole = setting.replaceAll('${workspaceFolder}', folder).replace(/^~(?=[/\\])/, home);
  return path.isAbsolute(whole) ? whole : path.join(folder, whole);
}
