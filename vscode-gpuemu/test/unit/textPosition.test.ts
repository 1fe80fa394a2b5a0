import assert from 'node:assert/strict';
import { test } from 'node:test';

import { difference, editorRange } from '../../src/textPosition.ts';

const range = (line: number, from: number, to: number): Parameters<typeof editorRange>[0] => ({
  start: { line, column: from },
  end: { line, column: to },
});

void test('columns in characters become columns in UTF-16 units', () => {
  const text = 'a = "𝛼β"\nmodul = 1\n';
  assert.deepEqual(editorRange(range(1, 6, 8), text), { startLine: 0, startCharacter: 5, endLine: 0, endCharacter: 8 });
  assert.deepEqual(editorRange(range(2, 1, 6), text), { startLine: 1, startCharacter: 0, endLine: 1, endCharacter: 5 });
});

void test('a range without length is its line, and one behind the text its end', () => {
  const text = '[project]\r\n  name = 3\r\n';
  assert.deepEqual(editorRange(range(2, 1, 1), text), { startLine: 1, startCharacter: 2, endLine: 1, endCharacter: 10 });
  assert.equal(editorRange(range(99, 1, 5), text).startLine, 2);
});

void test('an edit is the part that differs', () => {
  const change = (before: string, after: string): string => {
    const { start, end, text } = difference(before, after);
    assert.equal(before.slice(0, start) + text + before.slice(end), after);
    return text;
  };
  assert.equal(change('atol = 1e-3 # why', 'atol = 5e-3 # why'), '5');
  assert.equal(change('a\n', 'a\nb\n'), 'b\n');
  assert.equal(change('aa', 'aaa'), 'a');
  assert.equal(change('same', 'same'), '');
});
