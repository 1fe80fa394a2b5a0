// A workspace may be opened through a link: the editor knows its files by one path, a program that runs in it by another.

import * as path from 'node:path';

/** A value in which every path below one folder is the same path below another. */
export function relocated<Value>(value: Value, from: string, to: string): Value {
  if (from === to) {
    return value;
  }
  const moved = (part: unknown): unknown => {
    if (typeof part === 'string') {
      return part.startsWith(from + path.sep) ? to + part.slice(from.length) : part;
    }
    if (Array.isArray(part)) {
      return part.map(moved);
    }
    if (typeof part === 'object' && part !== null) {
      return Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, moved(inner)]));
    }
    return part;
  };
  return moved(value) as Value;
}
