import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

interface Manifest {
  main: string;
  activationEvents: string[];
  capabilities: { untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string; enablement: string }[];
    configuration: { properties: Record<string, { default: unknown }> };
    menus: Record<string, { command: string }[]>;
  };
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;

function sources(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(`${folder}/${name}`, 'utf8'))
    .join('\n');
}

void test('every command that is contributed is registered, and every other way round', () => {
  const text = readFileSync('src/commands/index.ts', 'utf8');
  const body = text.slice(text.indexOf('const commands'), text.indexOf('Object.entries(commands)'));
  const registered = [...body.matchAll(/^ {4}(\w+):/gm)].map((match) => `gpuemu.${match[1] ?? ''}`);
  const contributed = manifest.contributes.commands.map(({ command }) => command);
  assert.deepEqual(registered.sort(), contributed.sort());
  for (const entry of Object.values(manifest.contributes.menus).flat()) {
    assert.ok(contributed.includes(entry.command), entry.command);
  }
});

void test('every setting that is contributed is read, with the default that is told', () => {
  const text = readFileSync('src/settings.ts', 'utf8');
  for (const [name, { default: value }] of Object.entries(manifest.contributes.configuration.properties)) {
    const short = name.replace('gpuemu.', '');
    const fallback = typeof value === 'string' ? `'${value}'` : String(value);
    assert.ok(text.includes(`setting('${short}', ${fallback}`), name);
  }
});

void test('nothing that runs a program is offered where the workspace is not trusted', () => {
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, 'limited');
  assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, ['gpuemu.path']);
  for (const { command, enablement } of manifest.contributes.commands) {
    assert.equal(enablement, 'isWorkspaceTrusted', command);
  }
});

void test('only one file starts processes, and nothing is sent anywhere', () => {
  const text = sources('src');
  assert.equal(text.match(/node:child_process/g)?.length, 1);
  assert.doesNotMatch(text, /node:https?|fetch\(|TelemetryLogger|createTelemetry/);
});

void test('the copy of the schema is the original', { skip: !existsSync('../docs/reference') }, () => {
  const read = (file: string): string => readFileSync(file, 'utf8');
  assert.equal(read('schemas/gpuemu.schema.json'), read('../docs/reference/gpuemu.schema.json'));
});
