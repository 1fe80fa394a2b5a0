// Draws images/icon.png: a heat map with one cell that is wrong.
import { writeFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';

const SIZE = 128;
const BACKGROUND = [27, 38, 49];
const CELLS = [
  ['#cfe8d5', '#a8d5b5', '#cfe8d5', '#a8d5b5'],
  ['#a8d5b5', '#cfe8d5', '#ffd97a', '#f67f4b'],
  ['#cfe8d5', '#a8d5b5', '#f67f4b', '#b3202c'],
  ['#a8d5b5', '#cfe8d5', '#a8d5b5', '#f67f4b'],
];
const MARGIN = 16;
const GAP = 4;

function rounded(x, y, left, top, side, radius) {
  const inside = x >= left && y >= top && x < left + side && y < top + side;
  const dx = Math.max(left + radius - x - 0.5, x + 0.5 - (left + side - radius), 0);
  const dy = Math.max(top + radius - y - 0.5, y + 0.5 - (top + side - radius), 0);
  return inside && Math.hypot(dx, dy) <= radius;
}

function colour(x, y) {
  if (!rounded(x, y, 0, 0, SIZE, 24)) {
    return [0, 0, 0, 0];
  }
  const side = (SIZE - 2 * MARGIN - 3 * GAP) / 4;
  for (const [row, cells] of CELLS.entries()) {
    for (const [column, cell] of cells.entries()) {
      if (rounded(x, y, MARGIN + column * (side + GAP), MARGIN + row * (side + GAP), side, 4)) {
        return [...[1, 3, 5].map((at) => Number.parseInt(cell.slice(at, at + 2), 16)), 255];
      }
    }
  }
  return [...BACKGROUND, 255];
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

const rows = Array.from({ length: SIZE }, (_, y) => [0, ...Array.from({ length: SIZE }, (__, x) => colour(x, y)).flat()]);
const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6, 0, 0, 0], 8);
const image = deflateSync(Buffer.from(rows.flat()), { level: 9 });
const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const parts = [signature, chunk('IHDR', header), chunk('IDAT', image), chunk('IEND', Buffer.alloc(0))];
writeFileSync('images/icon.png', Buffer.concat(parts));
