import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { after, test } from 'node:test';

import { findBinary } from '../../src/binary.ts';
import * as commandLine from '../../src/commandLine.ts';
import { Cancelled } from '../../src/process.ts';
import { GpuemuError, NotInstalled, Runner, type RunnerEnvironment } from '../../src/runner.ts';
import { failedResult, LARGE_SEED } from './samples.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'gpuemu-runner-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A program that does what a script says, and writes down the words that it was given. */
function program(name: string, script: string): string {
  const file = path.join(folder, name);
  const node = JSON.stringify(process.execPath);
  const words = JSON.stringify(path.join(folder, `${name}.words`));
  const head = `require('fs').writeFileSync(${words}, JSON.stringify(process.argv.slice(2)));`;
  writeFileSync(`${file}.js`, `${head}\n${script}`);
  writeFileSync(file, `#!/bin/sh\nexec ${node} ${JSON.stringify(`${file}.js`)} "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}

function wordsOf(file: string): string[] {
  return JSON.parse(readFileSync(`${file}.words`, 'utf8')) as string[];
}

function runner(file: string, changes: Partial<RunnerEnvironment> = {}): Runner {
  return new Runner({
    trusted: () => true,
    find: () => ({ program: file }),
    mayStartDaemon: () => true,
    variables: () => process.env,
    log: () => undefined,
    ...changes,
  });
}

void test('a seed above 2^63 survives unchanged into the process and back', async () => {
  const file = program('echo', 'console.log(JSON.stringify({ seed: process.argv[3] }))');
  const answer = await runner(file).json(commandLine.reproduce(failedResult()), { folder });
  assert.deepEqual(answer, { code: 0, value: { seed: LARGE_SEED } });
  assert.equal(wordsOf(file)[1], LARGE_SEED);
});

void test('a failed validation is an answer, an error is not', async () => {
  const failing = program('failing', 'console.log("{}"); process.exitCode = 1');
  assert.equal((await runner(failing).json(['test'], { folder })).code, 1);
  const broken = program('broken', 'console.error("a note\\nerror: no gpuemu.toml\\nhint: make one"); process.exitCode = 2');
  await assert.rejects(runner(broken).json(['test'], { folder }), (error: Error) => {
    return error instanceof GpuemuError && error.message === 'no gpuemu.toml\nhint: make one';
  });
  const chatty = program('chatty', 'console.log("passed")');
  await assert.rejects(runner(chatty).json(['test'], { folder }), /not JSON/);
});

void test('a text is given on standard input', async () => {
  const file = program('cat', 'console.log(JSON.stringify(require("fs").readFileSync(0, "utf8")))');
  const answer = await runner(file).json(['config', 'check', '--stdin'], { folder, input: 'αβ\n' });
  assert.equal(answer.value, 'αβ\n');
});

void test('cancelling interrupts the process', async () => {
  const file = program(
    'slow',
    `process.on('SIGINT', () => { require('fs').writeFileSync(${JSON.stringify(path.join(folder, 'interrupted'))}, ''); process.exit(130); });
     setInterval(() => {}, 1000);
     require('fs').writeFileSync(${JSON.stringify(path.join(folder, 'ready'))}, '');`,
  );
  const stop = new AbortController();
  const running = runner(file).json(['test'], { folder, signal: stop.signal });
  while (!existsSync(path.join(folder, 'ready'))) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  stop.abort();
  await assert.rejects(running, Cancelled);
  assert.ok(existsSync(path.join(folder, 'interrupted')));
  await assert.rejects(runner(file).json(['test'], { folder, signal: stop.signal }), Cancelled);
});

void test('nothing is run in a workspace that is not trusted', async () => {
  const file = program('untrusted', 'console.log("{}")');
  const refused = runner(file, { trusted: () => false });
  await assert.rejects(refused.json(['daemon', 'status'], { folder }), /not trusted/);
  await assert.rejects(refused.quietly(['daemon', 'start'], { folder }), /not trusted/);
  assert.ok(!existsSync(`${file}.words`));
});

void test('without leave to start the daemon the work is done without it', async () => {
  const file = program('alone', 'console.log("{}")');
  const alone = runner(file, { mayStartDaemon: () => false });
  await alone.json(['test', '--quick'], { folder });
  assert.deepEqual(wordsOf(file), ['test', '--quick', '--no-daemon']);
  await alone.json(['daemon', 'status'], { folder });
  assert.deepEqual(wordsOf(file), ['daemon', 'status']);
});

void test('a program that is missing is named', async () => {
  const missing = runner('', { find: () => ({ searched: ['/no/gpuemu'] }) });
  await assert.rejects(missing.json(['test'], { folder }), (error: Error) => {
    return error instanceof NotInstalled && error.message === 'gpuemu is not at /no/gpuemu';
  });
});

void test('the program is the one that is set, of a virtual environment, or on the search path', () => {
  const search = { setting: '', folders: ['/work/project', '/work'], variables: { PATH: '/usr/bin:/opt', HOME: '/home/me' } };
  const found = (changes: object, ...there: string[]): unknown =>
    findBinary({ platform: 'linux', ...search, ...changes }, (file) => there.includes(file));
  const local = '/work/.venv/bin/gpuemu';
  assert.deepEqual(found({}, '/usr/bin/gpuemu', '/opt/gpuemu', local), { program: local });
  assert.deepEqual(found({}, '/opt/gpuemu'), { program: '/opt/gpuemu' });
  assert.deepEqual(found({ setting: '~/bin/gpuemu' }, '/home/me/bin/gpuemu', local), { program: '/home/me/bin/gpuemu' });
  assert.deepEqual(found({ setting: '${workspaceFolder}/g' }, '/work/project/g'), { program: '/work/project/g' });
  // What is set is meant, even if it is not there.
  assert.deepEqual(found({ setting: 'target/gpuemu' }, local), { searched: ['/work/project/target/gpuemu'] });
  const active = { variables: { PATH: '', VIRTUAL_ENV: '/env' } };
  assert.deepEqual(found(active, '/env/bin/gpuemu'), { program: '/env/bin/gpuemu' });
});
