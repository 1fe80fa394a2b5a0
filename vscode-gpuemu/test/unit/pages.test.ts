import assert from 'node:assert/strict';
import { test } from 'node:test';

import { heatMapPage, level } from '../../src/heatMapPage.ts';
import type { ErrorPicture } from '../../src/report.ts';
import { pageAt } from '../../src/reportPage.ts';
import { kernelFile, locatedFindings } from '../../src/sanitizeMapping.ts';
import { failedResult, LARGE_SEED } from './samples.ts';

const PICTURE: ErrorPicture = {
  tensor: 'out',
  dtype: 'float16',
  shape: [2, 3],
  mismatched: 3,
  elements: 6,
  map: { rows: 2, columns: 3, entries: 1, row_step: 1, column_step: 1, cells: [0, 0.5, 2, null, 'NaN', 'Infinity'] },
  column_tile: { size: 2, seen_by: 'tail' },
  window: {
    worst: [1, 2],
    first_row: 1,
    first_column: 2,
    rows: [[{ actual: 'NaN', expected: 0.25, error: 'NaN' }]],
  },
};

void test('errors have levels: nothing, allowed, wrong by powers of ten, special, not judged', () => {
  const errors = [0, 0.5, 1, 1.5, 50, 'Infinity', 'NaN', null];
  assert.deepEqual(errors.map(level), [0, 1, 1, 2, 3, 6, 'special', 'unknown']);
});

void test('the heat map has a cell for each error, with the place', () => {
  const page = heatMapPage({ result: failedResult(), picture: PICTURE });
  assert.equal(page.match(/<rect /g)?.length, 6);
  assert.match(page, /<rect class="level-2"[^>]*><title>\[0, 2\]: 2 of what is allowed<\/title>/);
  assert.match(page, /class="level-special"[^>]*><title>\[1, 1\]/);
  assert.match(page, /3 of 6 elements of out\[2, 3\] are wrong; dashed: tiles of 2 columns/);
  assert.equal(page.match(/<line class="tile"/g)?.length, 1);
  assert.ok(page.includes(LARGE_SEED));
});

void test('nothing of the workspace becomes markup, and nothing is loaded or run', () => {
  const result = failedResult({ op: '<img src=x onerror=alert(1)>', replay: '</code><script>' });
  const page = heatMapPage({ result, without_picture: 'the shape is wrong & more' });
  assert.ok(!page.includes('<img') && !page.includes('<script'));
  assert.ok(page.includes('the shape is wrong &amp; more'));
  assert.match(page, /default-src 'none'/);
});

void test('a report is opened at a failure by lines before its policy', () => {
  const page = '<!doctype html>\n<html><head><meta http-equiv="Content-Security-Policy"></head><body>$& </body></html>';
  const opened = pageAt(page, failedResult({ op: 'soft</script>max' }));
  assert.ok(opened.indexOf('<script>') < opened.indexOf('Content-Security-Policy'));
  assert.ok(opened.includes(`"seed":"${LARGE_SEED}"`) && opened.includes('soft\\u003c/script>max') && opened.includes('$& '));
  assert.ok(opened.includes('input[3, 13, 143]'));
  assert.equal(pageAt('no page', failedResult()), 'no page');
});

void test('findings of a launch lie in the source that the PTX names, or in the PTX', () => {
  const finding = (place: object | null): object => ({ fault: 'out_of_bounds', message: 'store', place, occurrences: 2 });
  const place = { instruction: 'st', ptx_line: 40, file: '/tmp/build/kernel.cu', line: 7 };
  const report = (found: object[], failure: string | null = null): Parameters<typeof locatedFindings>[0] =>
    ({ file: '', entry: 'k', failure, findings: found, more_findings: 0, not_checked: [] }) as never;
  assert.deepEqual(locatedFindings(report([finding(place)]), '/p/kernel.cu'), [
    { file: '/p/kernel.cu', line: 7, message: 'out of bounds: store (2 times)' },
  ]);
  assert.equal(locatedFindings(report([finding(place)]), '/p/kernel.ptx')[0]?.line, 40);
  assert.equal(locatedFindings(report([finding(null)]), '/p/kernel.ptx')[0]?.line, 1);
  assert.deepEqual(locatedFindings(report([], 'it trapped'), '/p/k.py:kernel'), [{ file: '/p/k.py', line: 1, message: 'it trapped' }]);
  assert.equal(kernelFile('/p/k.cu'), '/p/k.cu');
});
