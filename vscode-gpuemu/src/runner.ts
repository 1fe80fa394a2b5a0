// Starts the command line with `--format json`, and reads nothing else.

import type { Found } from './binary.ts';
import { runProcess } from './process.ts';

/** What the runner is told by the editor. */
export interface RunnerEnvironment {
  /** Whether programs of this workspace may be run. */
  trusted(): boolean;
  /** The program for a folder. */
  find(folder: string): Found;
  /** Whether the daemon may be started by a command that needs it. */
  mayStartDaemon(): boolean;
  variables(): NodeJS.ProcessEnv;
  log(text: string): void;
}

export interface RunOptions {
  folder: string;
  input?: string;
  signal?: AbortSignal;
}

export interface Answer {
  /** 0: passed; 1: a validation failed; 2: something could not be judged. */
  code: number;
  value: unknown;
}

/** An error that gpuemu reported in its own words, or that kept it from running. */
export class GpuemuError extends Error {}

/** The program is not there. */
export class NotInstalled extends GpuemuError {
  constructor(readonly searched: readonly string[]) {
    super(
      searched.length === 1
        ? `gpuemu is not at ${searched[0] ?? ''}`
        : 'gpuemu was found neither in a virtual environment of the workspace nor on the search path',
    );
  }
}

/** Commands whose work the daemon does. */
const OF_THE_DAEMON = new Set(['test', 'fuzz', 'reproduce', 'minimize', 'failures', 'report']);

export class Runner {
  constructor(private readonly environment: RunnerEnvironment) {}

  /** Runs a command and returns its JSON. */
  async json(words: readonly string[], options: RunOptions): Promise<Answer> {
    const { code, output, errors } = await this.run(words, options);
    if (output.trim() === '') {
      throw new GpuemuError(said(errors) || `gpuemu ${words[0] ?? ''} ended with status ${code} and said nothing`);
    }
    try {
      return { code, value: JSON.parse(output) as unknown };
    } catch {
      throw new GpuemuError(`gpuemu ${words[0] ?? ''} printed something that is not JSON: ${output.slice(0, 200)}`);
    }
  }

  /** Runs a command that prints nothing to be read, and must succeed. */
  quietly(words: readonly string[], options: RunOptions): Promise<void> {
    return this.unread(words, options, [0]);
  }

  /** Runs a command that writes a report to a file, whatever the report says. */
  writing(words: readonly string[], options: RunOptions): Promise<void> {
    return this.unread(words, options, [0, 1]);
  }

  private async unread(words: readonly string[], options: RunOptions, expected: readonly number[]): Promise<void> {
    const { code, errors } = await this.run(words, options);
    if (!expected.includes(code)) {
      throw new GpuemuError(said(errors) || `gpuemu ${words.join(' ')} ended with status ${code}`);
    }
  }

  private async run(words: readonly string[], options: RunOptions): Promise<{ code: number; output: string; errors: string }> {
    if (!this.environment.trusted()) {
      throw new GpuemuError('nothing is run in a workspace that is not trusted');
    }
    const found = this.environment.find(options.folder);
    if (!('program' in found)) {
      throw new NotInstalled(found.searched);
    }
    const alone = OF_THE_DAEMON.has(words[0] ?? '') && !this.environment.mayStartDaemon();
    const whole = alone ? [...words, '--no-daemon'] : words;
    this.environment.log(`$ gpuemu ${whole.join(' ')}`);
    const variables = { ...this.environment.variables(), NO_COLOR: '1' };
    const { code, output, errors } = await runProcess(found.program, whole, { ...options, variables });
    if (errors.trim() !== '') {
      this.environment.log(errors.trimEnd());
    }
    if (code === null) {
      throw new GpuemuError(`gpuemu ${words[0] ?? ''} was ended by a signal`);
    }
    return { code, output, errors };
  }
}

/** What an error on standard error says, without notes that go before it. */
function said(errors: string): string {
  const start = errors.indexOf('error: ');
  return (start < 0 ? errors : errors.slice(start + 'error: '.length)).trim();
}
