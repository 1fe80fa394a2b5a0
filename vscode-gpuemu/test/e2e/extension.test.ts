// The extension in a real VS Code: a session as a user has it, from a workspace that is not trusted to an op that is mended.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { after, before, test } from 'node:test';

import { CodeServer, needed } from './codeServer.ts';
import { CONFIGURATION, DEFINITION_LINE, OP_LINE, RIGHT_TEXT, STORE_LINE, WRONG_LINE, writeProject } from './project.ts';
import { Workbench } from './workbench.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'gpuemu-vscode-'));
const at = (name: string): string => path.join(folder, name);
const calls = at('calls');
const artifacts = path.resolve(process.env['GPUEMU_TEST_ARTIFACTS'] ?? 'artifacts');

/** gpuemu with the environment of the editor. */
const variables = {
  ...process.env,
  HOME: folder,
  XDG_CONFIG_HOME: at('config'),
  GPUEMU_HOME: at('gpuemu'),
  GPUEMU_PYTHON: process.env['GPUEMU_TEST_PYTHON'],
};

function gpuemu(...words: string[]): { status: number | null; output: string } {
  const { status, stdout } = spawnSync(needed('GPUEMU_TEST_PROGRAM'), words, { env: variables, cwd: at('workspace') });
  return { status, output: stdout.toString() };
}

/** The commands that the editor has run so far. */
function commands(): string[] {
  return existsSync(calls) ? readFileSync(calls, 'utf8').trimEnd().split('\n') : [];
}

/** Waits until something holds. */
async function expectSoon(holds: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

let server: CodeServer;
let workbench: Workbench;
let broken: string | undefined;

/** A step of the session. After one that failed the others would only wait for what cannot come. */
function step(name: string, act: () => Promise<void>): void {
  void test(name, async (context) => {
    if (broken !== undefined) {
      context.skip(`after a step that failed: ${broken}`);
      return;
    }
    try {
      await act();
    } catch (error) {
      broken = name;
      await workbench.screenshot('failed');
      throw error;
    }
  });
}

before(async () => {
  needed('GPUEMU_TEST_PYTHON');
  // Opened through a link: programs that run in it see other paths than the editor.
  writeProject(at('project'));
  symlinkSync('project', at('workspace'));
  // The program, with every call of it written down.
  const program = at('gpuemu-with-a-record');
  writeFileSync(program, `#!/bin/sh\necho "$*" >> '${calls}'\nexec '${needed('GPUEMU_TEST_PROGRAM')}' "$@"\n`);
  chmodSync(program, 0o755);
  server = await CodeServer.start({
    folder,
    extension: needed('GPUEMU_TEST_EXTENSION'),
    variables,
    machineSettings: { 'gpuemu.path': program },
    settings: {
      'gpuemu.debounce': 100,
      'security.workspace.trust.enabled': true,
      'security.workspace.trust.startupPrompt': 'never',
      'security.workspace.trust.banner': 'never',
      'workbench.startupEditor': 'none',
      'workbench.colorTheme': 'Default Light Modern',
      'workbench.secondarySideBar.defaultVisibility': 'hidden',
      'editor.autoIndent': 'none',
      'editor.autoClosingBrackets': 'never',
      'editor.autoClosingQuotes': 'never',
      'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
      'editor.suggestOnTriggerCharacters': false,
      'editor.minimap.enabled': false,
      'files.hotExit': 'off',
      'chat.disableAIFeatures': true,
    },
  });
  workbench = await Workbench.open(server.address, at('workspace'), artifacts);
});

after(async () => {
  try {
    await workbench.close();
  } finally {
    server.stop();
    gpuemu('daemon', 'stop');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
});

step('nothing is run before the workspace is trusted, and completion works', async () => {
  await workbench.page.locator('.statusbar-item', { hasText: 'Restricted Mode' }).waitFor();
  await workbench.openFile('gpuemu.toml');
  await workbench.replaceLine(8, 'check_n');
  await workbench.page.keyboard.press('Control+Space');
  await workbench.page.locator('.suggest-widget .monaco-list-row', { hasText: 'check_nan' }).waitFor();
  await workbench.screenshot('restricted-mode-completion');
  await workbench.page.keyboard.press('Escape');
  await workbench.replaceLine(8, 'seed = 1');
  await workbench.save();
  assert.deepEqual(commands(), []);
  assert.equal(await workbench.statusBar().count(), 0);
});

step('with trust the daemon is started and the ops are found', async () => {
  await workbench.command('Manage Workspace Trust');
  await workbench.page.locator('.workspace-trust-editor .monaco-button', { hasText: /^Trust/ }).first().click();
  await workbench.status('gpuemu');
  await workbench.statusBar().locator('[aria-label*="daemon running"]').waitFor();
  assert.equal(gpuemu('daemon', 'status').status, 0);
  await workbench.command('Testing: Focus on Test Explorer View');
  await workbench.tests('softmax').waitFor();
  await workbench.tests('relu').waitFor();
});

step('saving a broken op shows the failure in Problems, in the configuration and in the source', async () => {
  await workbench.openFile('kernels/softmax.py');
  await workbench.replaceLine(5, 'TILE = 64  # elements');
  await workbench.save();
  await workbench.status('1 op fails');
  await workbench.showProblems();
  await workbench.problems(/softmax fails in float16: value/).nth(1).waitFor();
  assert.equal(await workbench.problems(/softmax fails in float16: value/).count(), 2);
  assert.equal(await workbench.problems(/relu|float32/).count(), 0);
  const text = (await workbench.problems(/softmax fails/).first().innerText()).replaceAll('\u00a0', ' ');
  const seed = /seed (\d+)/.exec(text)?.[1] ?? '';
  assert.ok(BigInt(seed) > 1n << 63n, `a seed above 2^63 is wanted for what follows: ${text}`);
});

step('the Test Explorer shows the dtype that failed, with the message', async () => {
  await workbench.tests('softmax').click();
  await workbench.page.keyboard.press('ArrowRight');
  await workbench.page.locator('.test-explorer [aria-label*="float16 (Failed)"]').waitFor();
  await workbench.page.locator('.test-explorer [aria-label*="float32 (Passed)"]').first().waitFor();
  await workbench.screenshot('problems-and-tests');
});

step('the quick fix minimises the failure', async () => {
  await workbench.openFile('kernels/softmax.py');
  const menu = await workbench.quickFixes(DEFINITION_LINE, 6);
  await workbench.screenshot('quick-fixes');
  const fix = menu.locator('.monaco-list-row', { hasText: 'Minimise this failure of softmax' });
  const seed = /seed (\d+)/.exec(await fix.innerText())?.[1] ?? '';
  await fix.click();
  await workbench.problems(/softmax fails/).first().filter({ hasText: 'fails at H=65, passes at H=64' }).waitFor();
  const minimised = commands().find((line) => line.startsWith('minimize '));
  assert.equal(minimised?.split(' ')[1], seed, 'the seed is unchanged, digit by digit');
  assert.ok(BigInt(seed) > 1n << 63n);
  await workbench.screenshot('problems');
});

step('a run of the Test Explorer tries all ops in all dtypes', async () => {
  await workbench.command('Test: Run All Tests');
  await workbench.page.locator('.test-explorer [aria-label*="relu (Passed)"]').waitFor();
  await workbench.page.locator('.test-explorer [aria-label*="softmax (Failed)"]').waitFor();
  assert.ok(commands().includes('test --format json --op softmax --op relu'), commands().join('\n'));
});

step('the heat map shows where the output is wrong', async () => {
  await workbench.openFile('kernels/softmax.py');
  const menu = await workbench.quickFixes(DEFINITION_LINE, 6);
  await menu.locator('.monaco-list-row', { hasText: 'Show where softmax is wrong' }).click();
  const page = workbench.webview('softmax: where it is wrong');
  await page.locator('h2', { hasText: 'softmax, float16: value' }).waitFor();
  await page.locator('svg rect').first().waitFor();
  assert.match(await page.locator('body').innerText(), /\d+ of \d+ elements of out\[[\d, ]+\] are wrong/);
  await workbench.command('View: Close All Editors');
});

step('the report is opened at the failure', async () => {
  await workbench.openFile('gpuemu.toml');
  const menu = await workbench.quickFixes(OP_LINE, 10);
  const seed = /seed (\d+)/.exec(await menu.locator('.monaco-list-row', { hasText: 'Reproduce' }).innerText())?.[1] ?? '';
  await menu.locator('.monaco-list-row', { hasText: 'Open the report at this failure' }).click();
  const card = workbench.webview('Report on kernels').locator('details.card[open]:has(summary:focus)');
  await card.filter({ hasText: seed }).waitFor();
  const top = (await workbench.page.locator('iframe.webview.ready').boundingBox())?.y ?? 0;
  await expectSoon(async () => Math.abs(((await card.boundingBox())?.y ?? 9999) - top) < 60, 'the card is at the top');
  await workbench.screenshot('report');
  await workbench.command('View: Close All Editors');
});

step('the tolerance is adjusted in gpuemu.toml, and its comments stay', async () => {
  await workbench.openFile('gpuemu.toml');
  const menu = await workbench.quickFixes(OP_LINE, 10);
  await menu.locator('.monaco-list-row', { hasText: 'Adjust the tolerance of softmax in float16' }).click();
  await workbench.answer('atol = 0.05, rtol = 0');
  await workbench.page.locator('.view-line', { hasText: 'float16 = { atol = 0.05, rtol = 0.0 }' }).waitFor();
  await workbench.page.locator('.view-line', { hasText: '# tile by tile' }).waitFor();
  await workbench.screenshot('tolerance');
  await workbench.page.keyboard.press('Control+z');
  await workbench.page.locator('.tab.active:not(.dirty)').waitFor();
  assert.equal(readFileSync(at('workspace/gpuemu.toml'), 'utf8'), CONFIGURATION);
});

step('the Failures view lists what is stored', async () => {
  await workbench.command('gpuemu: Show Failures');
  const rows = workbench.page.locator('.pane-body .monaco-list-row');
  await rows.filter({ hasText: /^softmax\d+ failures$/ }).waitFor();
  await rows.filter({ hasText: 'float16, smallest' }).first().waitFor();
  // None of them was run since it failed and passed.
  assert.equal(await rows.locator('.codicon-pass').count(), 0);
  await workbench.screenshot('failures');
  await rows.filter({ hasText: '3x13 H=143' }).click();
  const page = workbench.webview('softmax: where it is wrong');
  await page.locator('p', { hasText: '5577 of 5577 elements of out[3, 13, 143]' }).waitFor();
  await workbench.page.keyboard.press('Control+j');
  await page.locator('table').waitFor();
  await workbench.screenshot('heat-map');
  await workbench.page.keyboard.press('Control+j');
  await workbench.command('View: Close All Editors');
});

step('a kernel is sanitized, and what is wrong is shown at its line', async () => {
  await workbench.openFile('fill.ptx');
  await workbench.command('gpuemu: Sanitize Kernel');
  await workbench.answer('--grid 1 --block 64 --arg i32:out:32');
  await workbench.showProblems();
  const problem = workbench.problems(/out of bounds: write of 4 bytes/);
  await problem.waitFor();
  assert.match(await problem.innerText(), new RegExp(`Ln ${STORE_LINE}, Col`));
  await workbench.openFile('fill.ptx');
  await workbench.command('gpuemu: Sanitize Kernel');
  await workbench.answer('--grid 1 --block 32 --arg i32:out:32');
  await problem.waitFor({ state: 'detached' });
});

step('the status bar follows the daemon being stopped and started', async () => {
  assert.equal(gpuemu('daemon', 'stop').status, 0);
  await workbench.status('daemon stopped');
  await workbench.screenshot('daemon-stopped');
  await workbench.statusBar().click();
  await workbench.choose('Start the daemon');
  await workbench.statusBar().filter({ hasNotText: 'daemon stopped' }).waitFor();
  assert.equal(gpuemu('daemon', 'status').status, 0);
});

step('mending the op and saving clears everything', async () => {
  await workbench.openFile('kernels/softmax.py');
  await workbench.replaceLine(WRONG_LINE, RIGHT_TEXT);
  await workbench.save();
  await workbench.status('passed');
  await workbench.showProblems();
  await workbench.noProblems();
  await workbench.command('Testing: Focus on Test Explorer View');
  await workbench.page.locator('.test-explorer [aria-label*="float16 (Passed)"]').first().waitFor();
  assert.equal(await workbench.page.locator('.test-explorer [aria-label*="(Failed)"]').count(), 0);
  await workbench.screenshot('all-clear');
});

step('a continuous run of the Test Explorer takes the place of validation on save', async () => {
  const eye = workbench.page.locator('.composite.title a.action-label[class*="continuous-run"]').first();
  await eye.click();
  await workbench.choose('Run');
  await workbench.page.locator('.quick-input-widget .monaco-button', { hasText: 'OK' }).click();
  await workbench.page.locator('.composite.title a.action-label[class*="continuous-run-off"]').first().waitFor();
  const before = commands().length;
  await workbench.openFile('kernels/activations.py');
  await workbench.replaceLine(1, '# Activations.');
  await workbench.save();
  await expectSoon(() => Promise.resolve(commands().slice(before).includes('test --format json --op relu')), 'a full run');
  await eye.click();
  assert.ok(!commands().slice(before).some((line) => line.includes('--quick')));
});

step('a mistake in gpuemu.toml is underlined at its characters while one types', async () => {
  await workbench.openFile('gpuemu.toml');
  const line = CONFIGURATION.split('\n').indexOf('module = "kernels.softmax"') + 1;
  await workbench.replaceLine(line, 'modul = "kernels.softmax"');
  await workbench.showProblems();
  await workbench.problems('unknown field `modul`').waitFor();
  await workbench.problems('did you mean `module`?').first().waitFor();
  assert.match(await workbench.problems('unknown field').innerText(), new RegExp(`Ln ${line}, Col 1`));
  // The underlined box covers the word and nothing else.
  const underline = await workbench.page.locator('.squiggly-error').first().boundingBox();
  const word = await workbench.page.locator('.view-line', { hasText: 'modul' }).first().locator('span > span').first().boundingBox();
  assert.ok(underline !== null && word !== null);
  const characters = 'modul = "kernels.softmax"'.length;
  assert.ok(Math.abs(underline.x - word.x) < 2, `${underline.x} and ${word.x}`);
  assert.ok(Math.abs(underline.width - (word.width * 5) / characters) < 3, `${underline.width} of ${word.width}`);
  await workbench.screenshot('broken-configuration');
  await workbench.replaceLine(line, 'module = "kernels.softmax"');
  await workbench.noProblems();
  await workbench.save();
});
