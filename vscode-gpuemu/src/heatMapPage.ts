// The page with the heat map of a failure: where in the output it is wrong, and the numbers around the worst element. It
// needs no script.

import { caseText, short, what } from './problemMapping.ts';
import type { ElementError, ErrorPicture, Illustration, NumberText } from './report.ts';

/** Pixels of the longer side of the map. */
const SIDE = 520;

export function escaped(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => names[character] ?? character);
}

/** The level of an error: 0 is none, 1 within what is allowed, above that wrong by powers of ten. */
export function level(error: ElementError): 'unknown' | 'special' | number {
  if (error === null) {
    return 'unknown';
  }
  const share = Number(error);
  if (Number.isNaN(share)) {
    return 'special';
  }
  if (share <= 0) {
    return 0;
  }
  return share <= 1 ? 1 : Math.min(6, 2 + Math.floor(Math.log10(share)));
}

function cellClass(error: ElementError): string {
  return `level-${level(error)}`;
}

/** How an error is told. */
export function errorText(error: ElementError): string {
  const found = level(error);
  if (found === 'unknown') {
    return 'not judged';
  }
  if (found === 'special') {
    return 'NaN or infinity where it does not belong, or missing';
  }
  return `${short(typeof error === 'number' ? error : String(error))} of what is allowed`;
}

function map(picture: ErrorPicture): string {
  const { rows, columns, row_step, column_step, cells } = picture.map;
  const width = Math.ceil(columns / Math.max(1, column_step));
  const height = Math.ceil(rows / Math.max(1, row_step));
  const side = Math.max(2, Math.min(28, Math.floor(SIDE / Math.max(width, height, 1))));
  // A tensor of few rows is drawn with higher ones: a line of pixels shows nothing.
  const tall = Math.max(side, Math.min(24, Math.floor(96 / Math.max(height, 1))));
  const parts: string[] = [];
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      const error = cells[row * width + column] ?? null;
      const place = `[${span(row, row_step, rows)}, ${span(column, column_step, columns)}]`;
      const title = `<title>${place}: ${escaped(errorText(error))}</title>`;
      const at = `x="${column * side}" y="${row * tall}" width="${side}" height="${tall}"`;
      parts.push(`<rect class="${cellClass(error)}" ${at}>${title}</rect>`);
    }
  }
  const [w, h] = [width * side, height * tall];
  parts.push(...tileLines(picture, { side, tall, w, h }));
  const label = `errors of ${escaped(picture.tensor)}`;
  return `<svg role="img" aria-label="${label}" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" preserveAspectRatio="none">${parts.join('')}</svg>`;
}

function span(index: number, step: number, size: number): string {
  const first = index * step;
  const last = Math.min(first + step, size) - 1;
  return first >= last ? String(first) : `${first}–${last}`;
}

interface Sizes {
  side: number;
  tall: number;
  w: number;
  h: number;
}

function tileLines(picture: ErrorPicture, { side, tall, w, h }: Sizes): string[] {
  const { rows, columns, row_step, column_step } = picture.map;
  const lines: string[] = [];
  const tile = picture.column_tile?.size;
  for (let column = tile ?? columns; tile !== undefined && column < columns; column += tile) {
    const x = (column / column_step) * side;
    lines.push(`<line class="tile" x1="${x}" y1="0" x2="${x}" y2="${h}"/>`);
  }
  const rowTile = picture.row_tile?.size;
  for (let row = rowTile ?? rows; rowTile !== undefined && row < rows; row += rowTile) {
    const y = (row / row_step) * tall;
    lines.push(`<line class="tile" x1="0" y1="${y}" x2="${w}" y2="${y}"/>`);
  }
  return lines;
}

function numbers(picture: ErrorPicture): string {
  const { first_row, first_column, rows } = picture.window;
  const columns = rows[0]?.length ?? 0;
  const head = Array.from({ length: columns }, (_, column) => `<th>${first_column + column}</th>`).join('');
  const body = rows.map((row, index) => {
    const cells = row.map(({ actual, expected, error }) => {
      const beside = level(error) === 0 ? '' : `<br><small>${escaped(shown(expected))}</small>`;
      return `<td class="${cellClass(error)}" title="${escaped(errorText(error))}">${escaped(shown(actual))}${beside}</td>`;
    });
    return `<tr><th>${first_row + index}</th>${cells.join('')}</tr>`;
  });
  return `<div class="wide"><table><thead><tr><th></th>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

function shown(value: NumberText): string {
  return typeof value === 'number' ? String(Number(value.toPrecision(4))) : value;
}

const LEGEND: [string, string][] = [
  ['level-0', 'exact'],
  ['level-1', 'allowed'],
  ['level-2', 'wrong'],
  ['level-4', '100 times'],
  ['level-6', '10 000 times and more'],
  ['level-special', 'NaN or infinity'],
  ['level-unknown', 'not judged'],
];

const STYLE = `
body { font: var(--vscode-font-size) var(--vscode-font-family); color: var(--vscode-foreground); padding: 0 1.5em 2em; }
code { font-family: var(--vscode-editor-font-family); }
svg { background: var(--vscode-editorWidget-background); display: block; margin: 1em 0; max-width: 100%; }
.wide { overflow-x: auto; }
rect { stroke: var(--vscode-editor-background); stroke-width: 0.5; }
.tile { stroke: var(--vscode-foreground); stroke-dasharray: 4 3; }
table { border-collapse: collapse; font-family: var(--vscode-editor-font-family); font-size: 90%; }
td, th { padding: 2px 6px; text-align: right; border: 1px solid var(--vscode-editorWidget-border, #8884); }
td { color: #111; } small { opacity: 0.75; }
.legend { display: flex; flex-wrap: wrap; gap: 1em; }
.legend span::before { content: ''; display: inline-block; width: 0.9em; height: 0.9em; margin-right: 0.4em; background: var(--cell); }
.level-0 { fill: #e8f3ec; background: #e8f3ec; --cell: #e8f3ec; } .level-1 { fill: #a8d5b5; background: #a8d5b5; --cell: #a8d5b5; }
.level-2 { fill: #ffd97a; background: #ffd97a; --cell: #ffd97a; } .level-3 { fill: #ffb04f; background: #ffb04f; --cell: #ffb04f; }
.level-4 { fill: #f67f4b; background: #f67f4b; --cell: #f67f4b; } .level-5 { fill: #e04b3a; background: #e04b3a; --cell: #e04b3a; }
.level-6 { fill: #b3202c; background: #b3202c; --cell: #b3202c; }
td.level-5, td.level-6 { color: #fff; }
.level-special { fill: #b57edc; background: #b57edc; --cell: #b57edc; } .level-unknown { fill: #9b9b9b; background: #9b9b9b; --cell: #9b9b9b; }
`;

function tileText(picture: ErrorPicture): string {
  const tiles = [
    picture.row_tile && `tiles of ${picture.row_tile.size} rows`,
    picture.column_tile && `tiles of ${picture.column_tile.size} columns`,
  ].filter((tile) => tile !== undefined);
  return tiles.length === 0 ? '' : `; dashed: ${tiles.join(', ')}`;
}

/** The page. */
export function heatMapPage({ result, picture, without_picture }: Illustration): string {
  const finding = result.failures[0];
  const parts = [
    `<h2>${escaped(result.op)}, ${escaped(result.dtype)}: ${escaped(finding?.check ?? result.outcome)}</h2>`,
    `<p>${escaped(finding === undefined ? (result.message ?? '') : what(finding))}</p>`,
    `<p>${escaped(caseText(result))}<br><code>${escaped(result.replay)}</code></p>`,
  ];
  if (picture === undefined) {
    parts.push(`<p>${escaped(without_picture ?? 'there is nothing to be shown')}</p>`);
  } else {
    const { tensor, shape, mismatched, elements, map: heat } = picture;
    const over = heat.entries > 1 ? `, the gravest of ${heat.entries} entries` : '';
    const text = `${mismatched} of ${elements} elements of ${tensor}[${shape.join(', ')}] are wrong${over}${tileText(picture)}`;
    const legend = LEGEND.map(([name, words]) => `<span class="${name}" style="background:none">${words}</span>`);
    parts.push(`<p>${escaped(text)}</p>`, map(picture), `<p class="legend">${legend.join('')}</p>`);
    const worst = `[${picture.window.worst.join(', ')}]`;
    parts.push(`<h3>Around the worst element, ${worst}</h3><p>What came back, below it what was expected.</p>`);
    parts.push(numbers(picture));
  }
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  const head = `<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><style>${STYLE}</style>`;
  return `<!DOCTYPE html><html lang="en"><head>${head}</head><body>${parts.join('\n')}</body></html>`;
}
