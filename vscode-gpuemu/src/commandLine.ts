// The command lines that the extension runs. Nothing here starts a program.

import { seedText, type ValidationResult } from './report.ts';

export interface TestOptions {
  ops?: readonly string[];
  dtypes?: readonly string[];
  quick?: boolean;
}

const JSON_FORMAT = ['--format', 'json'];

export function test(options: TestOptions): string[] {
  const words = ['test', ...JSON_FORMAT];
  if (options.quick) {
    words.push('--quick');
  }
  return [...words, ...named('--op', options.ops), ...list('--dtypes', options.dtypes)];
}

export function fuzz(ops: readonly string[], iterations: number): string[] {
  return ['fuzz', ...JSON_FORMAT, '--iterations', String(iterations), ...named('--op', ops)];
}

export function reproduce(result: Pick<ValidationResult, 'seed' | 'op' | 'minimized' | 'settings'>): string[] {
  const words = ['reproduce', seedText(result.seed), ...JSON_FORMAT, '--op', result.op];
  return result.minimized ? [...words, '--minimized'] : [...words, ...quickly(result)];
}

/** Runs a case again and says where in its output the errors are. */
export function picture(result: Pick<ValidationResult, 'seed' | 'op' | 'settings'>): string[] {
  return ['reproduce', seedText(result.seed), '--picture', ...JSON_FORMAT, '--op', result.op, ...quickly(result)];
}

export function minimize(result: Pick<ValidationResult, 'seed' | 'op' | 'settings'>): string[] {
  return ['minimize', seedText(result.seed), ...JSON_FORMAT, '--op', result.op, ...quickly(result)];
}

export function failures(): string[] {
  return ['failures', 'list', ...JSON_FORMAT];
}

export function replayFailures(op: string, limit: number): string[] {
  return ['failures', 'replay', ...JSON_FORMAT, '--op', op, '--limit', String(limit)];
}

export function checkConfig(unsaved: boolean): string[] {
  const words = ['config', 'check', ...JSON_FORMAT];
  return unsaved ? [...words, '--stdin'] : words;
}

export function setTolerance(op: string, dtype: string, atol: string, rtol: string): string[] {
  const tolerance = [`--atol=${atol}`, `--rtol=${rtol}`];
  return ['config', 'tolerance', ...JSON_FORMAT, '--stdin', '--op', op, '--dtype', dtype, ...tolerance];
}

export function daemonStatus(): string[] {
  return ['daemon', 'status', ...JSON_FORMAT];
}

export function initialise(folder: string, framework: string, examples: boolean): string[] {
  const words = ['init', folder, ...JSON_FORMAT, '--framework', framework];
  return examples ? [...words, '--with-examples'] : words;
}

export function sanitize(kernel: string, launch: readonly string[]): string[] {
  return ['sanitize', kernel, ...JSON_FORMAT, ...launch];
}

export function htmlReport(file: string): string[] {
  return ['report', '--format', 'html', '--output', file];
}

/** A case that a quick run drew is drawn again only in a quick run. */
function quickly(result: Pick<ValidationResult, 'settings'>): string[] {
  return result.settings?.quick ? ['--quick'] : [];
}

function named(option: string, values: readonly string[] = []): string[] {
  return values.flatMap((value) => [option, value]);
}

function list(option: string, values: readonly string[] = []): string[] {
  return values.length > 0 ? [option, values.join(',')] : [];
}

/** The words of a line as a shell would split it: spaces part them, quotes hold them together. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (const character of line) {
    if (quote !== undefined) {
      if (character === quote) {
        quote = undefined;
      } else {
        word = `${word ?? ''}${character}`;
      }
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) {
        found.push(word);
        word = undefined;
      }
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== undefined) {
    throw new Error(`a quote is not closed: ${line}`);
  }
  return word === undefined ? found : [...found, word];
}
