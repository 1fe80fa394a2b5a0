// gpuemu counts lines and columns from 1 and columns in characters; editors count from 0 and in UTF-16 units.

import type { TextPlace, TextRange } from './report.ts';

export interface EditorRange {
  startLine: number;
  startCharacter: number;
  endLine: number;
  endCharacter: number;
}

/** A place in the lines of a text, as an editor counts. */
export function editorPlace(place: TextPlace, lines: readonly string[]): { line: number; character: number } {
  const line = Math.max(0, Math.min(place.line - 1, lines.length - 1));
  const characters = Array.from(lines[line] ?? '');
  return { line, character: characters.slice(0, Math.max(0, place.column - 1)).join('').length };
}

/** A range as an editor counts. One that is empty is widened to its line, since nobody would see it. */
export function editorRange(range: TextRange, text: string): EditorRange {
  const lines = text.split(/\r\n|\n/);
  const start = editorPlace(range.start, lines);
  const end = editorPlace(range.end, lines);
  if (start.line === end.line && start.character === end.character) {
    const line = lines[start.line] ?? '';
    const indentation = line.length - line.trimStart().length;
    return { startLine: start.line, startCharacter: indentation, endLine: start.line, endCharacter: line.length };
  }
  return { startLine: start.line, startCharacter: start.character, endLine: end.line, endCharacter: end.character };
}

/** The one part of a text that differs from another: an edit of that part leaves the rest as it was. */
export function difference(before: string, after: string): { start: number; end: number; text: string } {
  let start = 0;
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && before[start] === after[start]) {
    start += 1;
  }
  let behind = 0;
  while (behind < shorter - start && before[before.length - 1 - behind] === after[after.length - 1 - behind]) {
    behind += 1;
  }
  return { start, end: before.length - behind, text: after.slice(start, after.length - behind) };
}
