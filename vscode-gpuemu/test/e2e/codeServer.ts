// A real VS Code, as code-server, with nothing of the user's own.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import * as path from 'node:path';

export interface CodeServerOptions {
  /** Its folder for everything that it writes. */
  folder: string;
  extension: string;
  settings: object;
  /** Settings of the machine that the extension runs on, such as paths. */
  machineSettings: object;
  variables: NodeJS.ProcessEnv;
}

/** A variable that `cargo xtask test --only extension-vscode` sets. */
export function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') {
    throw new Error(`${name} is not set; cargo xtask test --only extension-vscode sets it`);
  }
  return value;
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}

export class CodeServer {
  private constructor(
    readonly address: string,
    private readonly process: ChildProcess,
  ) {}

  static async start(options: CodeServerOptions): Promise<CodeServer> {
    const at = (name: string): string => path.join(options.folder, name);
    mkdirSync(at('data/User'), { recursive: true });
    writeFileSync(at('data/User/settings.json'), JSON.stringify(options.settings));
    mkdirSync(at('data/Machine'), { recursive: true });
    writeFileSync(at('data/Machine/settings.json'), JSON.stringify(options.machineSettings));
    writeFileSync(at('config.yaml'), '');
    const entry = path.join(needed('GPUEMU_TEST_CODE_SERVER'), 'out/node/entry.js');
    const folders = ['--user-data-dir', at('data'), '--extensions-dir', at('extensions'), '--config', at('config.yaml')];
    const env = { ...options.variables, CI: undefined };
    const installed = spawnSync(process.execPath, [entry, ...folders, '--install-extension', options.extension], { env });
    if (installed.status !== 0) {
      throw new Error(`the extension was not installed:\n${String(installed.stdout)}${String(installed.stderr)}`);
    }
    const port = await freePort();
    const words = [entry, ...folders, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`];
    const quiet = ['--disable-telemetry', '--disable-update-check', '--disable-getting-started-override'];
    const child = spawn(process.execPath, [...words, ...quiet], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    await listening(child);
    return new CodeServer(`http://127.0.0.1:${port}`, child);
  }

  /** Ends it with everything that it started. */
  stop(): void {
    if (this.process.pid !== undefined) {
      try {
        process.kill(-this.process.pid, 'SIGTERM');
      } catch {
        // It has ended already.
      }
    }
  }
}

async function listening(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    const hear = (part: Buffer): void => {
      said += part.toString();
      if (said.includes('HTTP server listening')) {
        resolve();
      }
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.on('exit', (code) => reject(new Error(`code-server ended with ${String(code)}:\n${said}`)));
  });
}
