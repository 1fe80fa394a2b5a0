// Where findings of a launch are, in the kernel's own source if the PTX says so.

import * as path from 'node:path';

import type { AccessFinding, LaunchReport } from './report.ts';

export interface LocatedFinding {
  file: string;
  /** From 1. */
  line: number;
  message: string;
}

/** The file of a kernel: `file.py:kernel` is in `file.py`. */
export function kernelFile(kernel: string): string {
  return /\.py:[^/\\:]+$/.test(kernel) ? kernel.slice(0, kernel.lastIndexOf(':')) : kernel;
}

export function locatedFindings(report: LaunchReport, kernel: string): LocatedFinding[] {
  const own = kernelFile(kernel);
  const located = report.findings.map((finding) => ({ ...place(finding, own), message: message(finding) }));
  const stopped = report.failure === null ? [] : [{ file: own, line: 1, message: report.failure }];
  return [...stopped, ...located];
}

function place(finding: AccessFinding, own: string): { file: string; line: number } {
  const { place } = finding;
  if (place === null) {
    return { file: own, line: 1 };
  }
  // The compiler names files as it was given them.
  if (place.file !== null && place.line !== null && path.basename(place.file) === path.basename(own)) {
    return { file: own, line: place.line };
  }
  return own.endsWith('.ptx') ? { file: own, line: place.ptx_line } : { file: own, line: place.line ?? 1 };
}

function message(finding: AccessFinding): string {
  const times = finding.occurrences > 1 ? ` (${finding.occurrences} times)` : '';
  return `${finding.fault.replaceAll('_', ' ')}: ${finding.message}${times}`;
}
