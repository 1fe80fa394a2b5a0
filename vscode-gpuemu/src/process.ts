// One process from its start to its end.

import { spawn } from 'node:child_process';

export interface ProcessOptions {
  folder: string;
  /** What it reads; nothing by default. */
  input?: string;
  /** Aborted when the user cancels. */
  signal?: AbortSignal;
  variables?: NodeJS.ProcessEnv;
}

export interface Ended {
  /** The exit status; nothing where a signal ended it. */
  code: number | null;
  output: string;
  errors: string;
}

export class Cancelled extends Error {
  constructor() {
    super('cancelled');
  }
}

/** How long a process may take to end after it was asked to. */
const PATIENCE = 5_000;

/**
 * Runs a program without a shell. A cancelled one is interrupted, as by Ctrl-C: gpuemu then stops its job and keeps what
 * was done.
 */
export function runProcess(program: string, words: readonly string[], options: ProcessOptions): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const { signal } = options;
    if (signal?.aborted) {
      reject(new Cancelled());
      return;
    }
    const child = spawn(program, words, { cwd: options.folder, env: options.variables, stdio: 'pipe', shell: false });
    const output: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on('data', (part: Buffer) => output.push(part));
    child.stderr.on('data', (part: Buffer) => errors.push(part));
    let impatience: NodeJS.Timeout | undefined;
    const cancel = (): void => {
      child.kill('SIGINT');
      impatience = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
    };
    const end = (): void => {
      clearTimeout(impatience);
      signal?.removeEventListener('abort', cancel);
    };
    signal?.addEventListener('abort', cancel);
    child.on('error', (error) => {
      end();
      reject(error);
    });
    child.on('close', (code) => {
      end();
      if (signal?.aborted) {
        reject(new Cancelled());
      } else {
        resolve({ code, output: text(output), errors: text(errors) });
      }
    });
    // A program that ends before it has read everything is no error of its own.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

function text(parts: Buffer[]): string {
  return Buffer.concat(parts).toString('utf8');
}
