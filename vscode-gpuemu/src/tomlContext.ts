// Where in a configuration the cursor is: enough for completion and hover. What the file means, and whether it is valid,
// is for the command line to say.

export interface TomlContext {
  /** The keys that lead to the table which the cursor is in. */
  table: string[];
  /** A header, a key or a value. */
  kind: 'header' | 'key' | 'value';
  /** Of a value, its key. */
  key?: string;
  /** What is written before the cursor, of a word. */
  prefix: string;
  /** Whether the cursor is within quotes. */
  quoted: boolean;
  /** Of a header, whether it has two brackets. */
  array?: boolean;
}

const HEADER = /^\s*(\[\[?)\s*([^\]#]*)/;

/** The keys of a dotted name. */
export function keys(dotted: string): string[] {
  return dotted
    .split('.')
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'))
    .filter((part) => part !== '');
}

/** The last header at or above a line. */
function tableAt(lines: readonly string[], line: number): string[] {
  for (let above = line; above >= 0; above -= 1) {
    const match = HEADER.exec(lines[above] ?? '');
    // A line that begins with a bracket may also be the inside of an array: a header is closed on its line.
    if (match && /^\s*\[\[?[^[\]=,"']*\]\]?\s*(#.*)?$/.test(lines[above] ?? '')) {
      return keys(match[2] ?? '');
    }
  }
  return [];
}

/** The cursor's context, or nothing within a comment. */
export function contextAt(lines: readonly string[], line: number, character: number): TomlContext | undefined {
  const before = (lines[line] ?? '').slice(0, character);
  if (inComment(before)) {
    return undefined;
  }
  const header = /^\s*(\[\[?)([^\]=]*)$/.exec(before);
  if (header && !insideArray(lines, line)) {
    const dotted = header[2] ?? '';
    const end = dotted.lastIndexOf('.');
    const table = keys(end < 0 ? '' : dotted.slice(0, end));
    return { table, kind: 'header', prefix: dotted.slice(end + 1).trim(), quoted: false, array: header[1] === '[[' };
  }
  const table = tableAt(lines, line - 1);
  return withinStatement(table, statement(lines, line, before));
}

function inComment(before: string): boolean {
  const unquoted = before.replace(/"(\\.|[^"\\])*"|'[^']*'/g, '');
  return /^[^"']*#/.test(unquoted);
}

/** The statement up to the cursor: lines of an array that is still open belong together. */
function statement(lines: readonly string[], line: number, before: string): string {
  const first = insideArray(lines, line);
  return first === undefined ? before : [...lines.slice(first, line), before].join(' ');
}

/** The line in which an array began that is open where a line starts. */
function insideArray(lines: readonly string[], line: number): number | undefined {
  for (let above = line - 1; above >= 0; above -= 1) {
    const text = (lines[above] ?? '').replace(/"(\\.|[^"\\])*"|'[^']*'|#.*/g, '');
    if (/^\s*\[/.test(text) && !text.includes('=') && /\]\s*$/.test(text)) {
      return undefined;
    }
    if (/^\s*[\w."'-]+\s*=/.test(lines[above] ?? '')) {
      const open = [...lines.slice(above, line)].join(' ').replace(/"(\\.|[^"\\])*"|'[^']*'|#.*/g, '');
      return count(open, '[') > count(open, ']') ? above : undefined;
    }
  }
  return undefined;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** Walks through a statement: keys, equals signs and the braces of inline tables. */
function withinStatement(table: string[], text: string): TomlContext {
  const path = [...table];
  const opened: (string[] | 'array')[] = [];
  let key: string[] | undefined;
  let word = '';
  let quote: string | undefined;
  for (const character of text) {
    if (quote !== undefined) {
      if (character === quote) {
        quote = undefined;
      } else {
        word += character;
      }
    } else if (character === '"' || character === "'") {
      quote = character;
      word = '';
    } else if (character === '=') {
      key = keys(word);
      word = '';
    } else if (character === '{') {
      opened.push(key ?? []);
      path.push(...(key ?? []));
      key = undefined;
      word = '';
    } else if (character === '[') {
      opened.push('array');
      word = '';
    } else if (character === '}' || character === ']') {
      const closed = opened.pop();
      if (Array.isArray(closed)) {
        path.length -= closed.length;
        key = closed;
      }
      word = '';
    } else if (character === ',') {
      if (opened[opened.length - 1] !== 'array') {
        key = undefined;
      }
      word = '';
    } else if (/\s/.test(character) && key !== undefined) {
      word = '';
    } else {
      word += character;
    }
  }
  const prefix = word.trim();
  const quoted = quote !== undefined;
  if (key === undefined) {
    const dotted = keys(prefix.includes('.') ? prefix.slice(0, prefix.lastIndexOf('.')) : '');
    return { table: [...path, ...dotted], kind: 'key', prefix: prefix.slice(prefix.lastIndexOf('.') + 1), quoted };
  }
  const last = key[key.length - 1];
  return { table: [...path, ...key.slice(0, -1)], kind: 'value', key: last, prefix, quoted };
}

/** The key that a position is on, with the table that it is in. */
export function keyAt(lines: readonly string[], line: number, character: number): string[] | undefined {
  const text = lines[line] ?? '';
  const header = HEADER.exec(text);
  const isWord = (at: number): boolean => /[\w-]/.test(text[at] ?? '');
  let [start, end] = [character, character];
  while (start > 0 && isWord(start - 1)) {
    start -= 1;
  }
  while (isWord(end)) {
    end += 1;
  }
  if (start === end) {
    return undefined;
  }
  if (header && !insideArray(lines, line) && !text.includes('=')) {
    return keys(text.slice(text.lastIndexOf('[', start) + 1, end));
  }
  const context = contextAt(lines, line, end);
  if (context?.kind !== 'key' || !/^\s*[.=]/.test(text.slice(end))) {
    return undefined;
  }
  return [...context.table, text.slice(start, end)];
}
