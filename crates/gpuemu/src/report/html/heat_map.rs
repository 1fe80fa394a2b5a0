//! The map of errors over the last two dims, tile boundaries drawn.

use std::fmt::Write;

use gpuemu_model::picture::{ErrorPicture, Tile, TileEvidence};

use super::level::{Level, RatioClass};
use crate::markup::{Attribute, Markup, Picture};

/// Pixels that the cells fill at most, across and down.
const ROOM: (usize, usize) = (440, 320);

/// Pixels of a cell.
const CELL: (usize, usize) = (4, 24);

/// Pixels of a row of which there is only one, or very few.
const LONE_ROW: usize = 28;

/// Left of the cells, above and below them.
const MARGIN: (usize, usize, usize) = (46, 30, 34);

/// Lines closer together than this would cover what they divide.
const CLOSEST_LINES: f64 = 5.0;

/// One dim of the map as it is drawn.
struct Axis {
    size: usize,
    /// Elements of a cell.
    step: usize,
    /// Pixels of a cell.
    cell: usize,
    /// Pixels before the first cell.
    start: usize,
    tile: Option<Tile>,
}

impl Axis {
    /// Where an index begins.
    fn at(&self, index: usize) -> f64 {
        self.start as f64 + index as f64 * self.cell as f64 / self.step as f64
    }

    fn end(&self) -> f64 {
        (self.start + self.size.div_ceil(self.step) * self.cell) as f64
    }

    /// Where tiles meet. Lines that would be too close are left out, but for that of the last, partial tile.
    fn boundaries(&self) -> Vec<usize> {
        let Some(tile) = self.tile else { return Vec::new() };
        let apart = self.at(tile.size) - self.at(0);
        let all = (1..).map(|count| count * tile.size).take_while(|edge| *edge < self.size);
        let last = self.size / tile.size * tile.size;
        all.filter(|edge| apart >= CLOSEST_LINES || *edge == last).collect()
    }

    /// The index at which the last, partial tile begins.
    fn tail(&self) -> Option<usize> {
        let tile = self.tile?;
        let start = self.size / tile.size * tile.size;
        (start > 0 && start < self.size).then_some(start)
    }
}

/// Draws the map of a picture: how large errors are.
pub fn draw(markup: &mut Markup, picture: &ErrorPicture) {
    let map = &picture.map;
    let levels: String = map.cells.iter().map(|cell| Level::of(*cell).number().to_string()).collect();
    let (width, step, size) = (
        map.width().to_string(),
        format!("{},{}", map.row_step, map.column_step),
        format!("{},{}", map.rows, map.columns),
    );
    let data = [("data-levels", levels.as_str()), ("data-width", &width), ("data-step", &step), ("data-size", &size)];
    let classes =
        Level::all().map(|level| (level.class(), map.cells.iter().map(|cell| Level::of(*cell) == level).collect()));
    draw_cells(markup, picture, ("map", &describe(picture)), &data, classes);
}

/// Draws what was returned as a multiple of what was expected.
pub fn draw_ratios(markup: &mut Markup, picture: &ErrorPicture) {
    let map = &picture.map;
    let of_cells = || map.cells.iter().zip(&map.ratios).map(|(cell, ratio)| RatioClass::of(*cell, *ratio));
    let classes = RatioClass::all().map(|class| (class.class(), of_cells().map(|one| one == class).collect()));
    let mut parts = Vec::new();
    for class in ratio_classes(picture) {
        parts.push(format!(
            "{} of {} cells {}",
            of_cells().filter(|one| *one == class).count(),
            map.cells.len(),
            class.words()
        ));
    }
    let label = format!("what was returned as a multiple of what was expected: {}", parts.join(", "));
    draw_cells(markup, picture, ("map ratios", &label), &[], classes);
}

/// The classes of multiples that a map has.
pub fn ratio_classes(picture: &ErrorPicture) -> Vec<RatioClass> {
    let map = &picture.map;
    let has = |class: &RatioClass| {
        map.cells.iter().zip(&map.ratios).any(|(cell, ratio)| RatioClass::of(*cell, *ratio) == *class)
    };
    RatioClass::all().filter(has).collect()
}

/// Draws cells in the colours of their classes, and the frame, tiles and indices around them.
fn draw_cells(
    markup: &mut Markup,
    picture: &ErrorPicture,
    (class, label): (&str, &str),
    data: &[Attribute<'_>],
    classes: impl Iterator<Item = (&'static str, Vec<bool>)>,
) {
    let map = &picture.map;
    let (width, height) = (map.width(), map.height());
    let square = (ROOM.0 / width.max(1)).min(ROOM.1 / height.max(1)).clamp(CELL.0, CELL.1);
    let tall = if height <= 2 { square.max(LONE_ROW) } else { square };
    let across =
        Axis { size: map.columns, step: map.column_step, cell: square, start: MARGIN.0, tile: picture.column_tile };
    let down = Axis { size: map.rows, step: map.row_step, cell: tall, start: MARGIN.1, tile: picture.row_tile };
    let size = (across.end() + 22.0, down.end() + MARGIN.2 as f64);
    let (origin, cell) = (format!("{},{}", across.start, down.start), format!("{square},{tall}"));
    let mut all = vec![("data-origin", origin.as_str()), ("data-cell", cell.as_str())];
    all.extend(data);
    markup.picture(&Picture { class, size, label, data: &all }, |markup| {
        for (class, cells) in classes {
            let path = path_of(&cells, width, &across, &down);
            if !path.is_empty() {
                markup.void("path", &[("class", class), ("d", &path)]);
            }
        }
        frame(markup, &across, &down);
        tiles(markup, &across, &down);
        ticks(markup, picture, &across, &down);
    });
}

/// The cells that are of one class, those beside each other as one piece.
fn path_of(cells: &[bool], width: usize, across: &Axis, down: &Axis) -> String {
    let mut path = String::new();
    for (row, cells) in cells.chunks(width.max(1)).enumerate() {
        let mut column = 0;
        while column < cells.len() {
            let run = cells[column..].iter().take_while(|cell| **cell).count();
            if run > 0 {
                let (x, y) = (across.start + column * across.cell, down.start + row * down.cell);
                let (wide, high) = (run * across.cell, down.cell);
                // Writing to a string cannot fail.
                let _ = write!(path, "M{x} {y}h{wide}v{high}h-{wide}z");
            }
            column += run.max(1);
        }
    }
    path
}

fn frame(markup: &mut Markup, across: &Axis, down: &Axis) {
    let (width, height) = (across.end() - across.at(0), down.end() - down.at(0));
    let (x, y) = (across.start.to_string(), down.start.to_string());
    let (width, height) = (width.to_string(), height.to_string());
    markup.void("rect", &[("class", "frame"), ("x", &x), ("y", &y), ("width", &width), ("height", &height)]);
}

fn tiles(markup: &mut Markup, across: &Axis, down: &Axis) {
    let mut lines = String::new();
    for edge in across.boundaries() {
        let _ = write!(lines, "M{:.1} {}V{}", across.at(edge), down.start - 4, down.end() + 4.0);
    }
    for edge in down.boundaries() {
        let _ = write!(lines, "M{} {:.1}H{}", across.start - 4, down.at(edge), across.end() + 4.0);
    }
    if !lines.is_empty() {
        markup.void("path", &[("class", "tile"), ("d", &lines)]);
    }
    if let Some(start) = across.tail() {
        let (from, to) = (across.at(start), across.end());
        strip(markup, (from, (down.start - 9) as f64), (to - from, 6.0));
        let anchor = if from > across.start as f64 + 80.0 { ("end", to) } else { ("start", from) };
        text(markup, (anchor.1, (down.start - 14) as f64), anchor.0, &partial(start, across.size));
    }
    if let Some(start) = down.tail() {
        strip(markup, (across.end() + 4.0, down.at(start)), (6.0, down.end() - down.at(start)));
        let x = across.end() + 18.0;
        let middle = (down.at(start) + down.end()) / 2.0;
        let turned = format!("rotate(90 {x:.0} {middle:.0})");
        let (x, y) = (format!("{x:.0}"), format!("{middle:.0}"));
        let attributes = [("x", x.as_str()), ("y", y.as_str()), ("text-anchor", "middle"), ("transform", &turned)];
        markup.leaf("text", &attributes, "partial tile");
    }
}

fn partial(start: usize, size: usize) -> String {
    match size - start {
        1 => format!("partial tile: {start}"),
        _ => format!("partial tile: {start}–{}", size - 1),
    }
}

fn strip(markup: &mut Markup, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let numbers = [x, y, width, height].map(|value| format!("{value:.1}"));
    let [x, y, width, height] = &numbers;
    markup.void("rect", &[("class", "tail"), ("x", x), ("y", y), ("width", width), ("height", height)]);
}

fn text(markup: &mut Markup, (x, y): (f64, f64), anchor: &'static str, words: &str) {
    let (x, y) = (format!("{x:.1}"), format!("{y:.1}"));
    markup.leaf("text", &[("x", &x), ("y", &y), ("text-anchor", anchor)], words);
}

/// The first and last index of both dims, and those of tiles where there is room.
fn ticks(markup: &mut Markup, picture: &ErrorPicture, across: &Axis, down: &Axis) {
    let rank = picture.shape.len();
    let below = down.end() + 14.0;
    let middle = |index: usize, axis: &Axis| (axis.at(index) + axis.at(index + 1)) / 2.0;
    text(markup, (middle(0, across), below), "middle", "0");
    let mut free = across.at(0) + 20.0;
    let last = across.size - 1;
    let last_at = middle(last, across);
    for edge in across.boundaries() {
        let x = across.at(edge);
        if x >= free && x <= last_at - 32.0 {
            text(markup, (x, below), "middle", &edge.to_string());
            free = x + 34.0;
        }
    }
    if last > 0 {
        text(markup, (last_at, below), "middle", &last.to_string());
    }
    let dim = rank.saturating_sub(1);
    text(markup, ((across.at(0) + across.end()) / 2.0, below + 14.0), "middle", &format!("dim {dim}"));
    if map_has_rows(picture) {
        let left = across.start as f64 - 7.0;
        text(markup, (left, middle(0, down) + 4.0), "end", "0");
        if down.size > 1 && down.end() - down.at(0) > 20.0 {
            text(markup, (left, middle(down.size - 1, down) + 4.0), "end", &(down.size - 1).to_string());
        }
        let y = (down.at(0) + down.end()) / 2.0;
        if down.end() - down.at(0) > 64.0 {
            text(markup, (left, y + 4.0), "end", &format!("dim {}", rank - 2));
        }
    }
}

fn map_has_rows(picture: &ErrorPicture) -> bool {
    picture.shape.len() >= 2
}

/// What the map shows, in words: for who cannot see it.
pub fn describe(picture: &ErrorPicture) -> String {
    let map = &picture.map;
    let wrong: Vec<usize> = (0..map.cells.len()).filter(|place| map.cells[*place].is_wrong()).collect();
    let range = |places: Vec<usize>, step: usize, size: usize| {
        let (low, high) = (places.iter().min().copied().unwrap_or(0), places.iter().max().copied().unwrap_or(0));
        let last = ((high + 1) * step).min(size) - 1;
        if low * step == last { format!("{last}") } else { format!("{}–{last}", low * step) }
    };
    let width = map.width().max(1);
    let columns = range(wrong.iter().map(|place| place % width).collect(), map.column_step, map.columns);
    let mut text = format!(
        "{} of {} elements of '{}' {:?} are wrong; along the last dim they lie in {columns}",
        picture.mismatched, picture.elements, picture.tensor, picture.shape
    );
    if map_has_rows(picture) {
        let rows = range(wrong.iter().map(|place| place / width).collect(), map.row_step, map.rows);
        let _ = write!(text, ", along the one before in {rows}");
    }
    text
}

/// What is drawn as tiles, and how it is known.
pub fn tile_words(picture: &ErrorPicture) -> Vec<String> {
    let rank = picture.shape.len();
    let words = |tile: Tile, dim: usize| {
        let known = match tile.seen_by {
            TileEvidence::Tail => "every error lies behind the last whole one".to_string(),
            TileEvidence::Edges => "errors begin and end at its multiples".to_string(),
            TileEvidence::Neighbour => {
                "the smallest failing case is one longer than a multiple of it that passes".to_string()
            }
        };
        format!("Lines: tiles of {} along dim {dim}, guessed because {known}.", tile.size)
    };
    let columns = picture.column_tile.map(|tile| words(tile, rank.saturating_sub(1)));
    let rows = picture.row_tile.map(|tile| words(tile, rank.saturating_sub(2)));
    columns.into_iter().chain(rows).collect()
}
