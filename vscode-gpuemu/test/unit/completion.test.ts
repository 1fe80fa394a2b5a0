import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { ConfigSchema, type Schema } from '../../src/schema.ts';
import { contextAt, keyAt } from '../../src/tomlContext.ts';

const schema = new ConfigSchema(JSON.parse(readFileSync('schemas/gpuemu.schema.json', 'utf8')) as Schema);

/** What is suggested where a text has a `|`. */
function suggested(text: string): { label: string; text: string }[] {
  const lines = text.replace('|', '').split('\n');
  const before = text.slice(0, text.indexOf('|')).split('\n');
  const context = contextAt(lines, before.length - 1, before[before.length - 1]?.length ?? 0);
  return context === undefined ? [] : schema.suggestions(context);
}

const labels = (text: string): string[] => suggested(text).map(({ label }) => label);

void test('tables are suggested in headers, lists of tables in double ones', () => {
  assert.ok(labels('[|').includes('validation'));
  assert.ok(!labels('[|').includes('ops'));
  assert.deepEqual(labels('[[|').sort(), ['expected_failures', 'kernels', 'ops']);
  assert.ok(labels('[[ops]]\nname = "a"\n[ops.|').includes('tolerances'));
  assert.ok(labels('[validation.tolerances.|').includes('float16'));
});

void test('keys are suggested in the table that the cursor is in', () => {
  const ops = labels('[project]\nname = "p"\n\n[[ops]]\nname = "a"\n|');
  assert.ok(ops.includes('module') && ops.includes('reference') && !ops.includes('check_nan'));
  assert.ok(labels('[validation]\nche|').includes('check_nan'));
  assert.deepEqual(labels('[ops.tolerances]\nfloat16 = { |').sort(), ['atol', 'rtol']);
  assert.deepEqual(labels('[[ops]]\ntolerances = { float16 = { atol = 1, |').sort(), ['atol', 'rtol']);
  assert.deepEqual(labels('[daemon.nonsense]\n|'), []);
});

void test('values are suggested from enumerations, within quotes or with them', () => {
  const modes = suggested('[[ops]]\nexecution_mode = |');
  assert.ok(modes.some(({ label, text }) => label === 'daemon_orchestrated' && text === '"daemon_orchestrated"'));
  assert.ok(suggested('[[ops]]\nexecution_mode = "dae|').some(({ text }) => text === 'daemon_orchestrated'));
  assert.deepEqual(labels('[validation]\ncheck_nan = |'), ['true', 'false']);
  assert.ok(labels('[validation]\ndtypes = ["float32", "|').includes('bfloat16'));
  assert.ok(labels('[validation]\ndtypes = [\n  "float32",\n  "|').includes('bfloat16'));
  assert.deepEqual(labels('[project]\nframework = "numpy" # |'), []);
});

void test('a hover tells what a key is for', () => {
  const lines = ['[[ops]]', 'module = "a"', 'tolerances = { float16 = { atol = 1e-3 } }', '[ci.quick]'];
  const described = (line: number, word: string): string | undefined => {
    const path = keyAt(lines, line, (lines[line] ?? '').indexOf(word) + 1);
    return path && schema.description(path);
  };
  assert.match(described(1, 'module') ?? '', /Python module of the op/);
  assert.match(described(2, 'atol') ?? '', /Absolute part/);
  assert.match(described(0, 'ops') ?? '', /ops to validate/);
  assert.match(described(3, 'quick') ?? '', /quick runs/);
  assert.equal(described(1, '"a"'), undefined);
});
