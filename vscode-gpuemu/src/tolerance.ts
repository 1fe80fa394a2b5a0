// What tolerance would let a failure pass.

import type { NumberText, TolerancePair, ValidationResult } from './report.ts';

/** A number of gpuemu's JSON, where NaN and infinities are strings. */
export function asNumber(value: NumberText): number {
  return Number(value);
}

/** The smallest number of two digits that is not below the given one. */
export function roundedUp(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) {
    return 0;
  }
  let exponent = Math.floor(Math.log10(value)) - 1;
  let digits = Math.ceil(value / 10 ** exponent - 1e-9);
  if (digits >= 100) {
    digits = Math.ceil(digits / 10);
    exponent += 1;
  }
  return Number(`${digits}e${exponent}`);
}

/**
 * The tolerance to begin with: an absolute part as large as the largest error that was seen. Nothing where no tolerance
 * would do: what is NaN, out of bounds or missing is no question of tolerance.
 */
export function suggestedTolerance(results: readonly ValidationResult[], now?: TolerancePair): TolerancePair | undefined {
  const findings = results.flatMap((result) => result.failures);
  if (findings.length === 0 || findings.some((finding) => finding.check !== 'value')) {
    return undefined;
  }
  const largest = Math.max(...results.map((result) => asNumber(result.max_abs_diff)));
  if (!Number.isFinite(largest)) {
    return undefined;
  }
  return { atol: Math.max(roundedUp(largest), now?.atol ?? 0), rtol: now?.rtol ?? 0 };
}

/** A pair as people type it, or what is wrong with it. */
export function parseTolerance(text: string): TolerancePair | string {
  const match = /^\s*(?:atol\s*=)?\s*([^,\s]+)\s*,\s*(?:rtol\s*=)?\s*([^,\s]+)\s*$/.exec(text);
  if (!match) {
    return 'two numbers are needed: atol, rtol';
  }
  const [atol, rtol] = [Number(match[1]), Number(match[2])];
  const wrong = [atol, rtol].find((value) => !Number.isFinite(value) || value < 0);
  return wrong === undefined ? { atol, rtol } : 'both must be numbers that are not negative';
}
