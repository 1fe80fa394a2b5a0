//! Guesses the tile that a kernel works in from where its errors begin and end.

use gpuemu_model::picture::{Tile, TileEvidence};

/// Tile sizes that kernels use.
const TILES: [usize; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

/// The largest tile whose last, partial copy along a dim holds every error, while the copies before are right.
/// `wrong` are indices along the dim.
pub fn tail_tile(size: usize, wrong: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    TILES.into_iter().rev().find(|tile| {
        let start = size / tile * tile;
        start > 0 && start < size && wrong.clone().all(|index| index >= start)
    })
}

/// The tile along a dim, where one shows: by a passing case next to the smallest failing one, or by the errors.
/// `wrong` says of each index whether an element there is wrong.
pub fn tile_along(wrong: &[bool], passing_size: Option<usize>) -> Option<Tile> {
    let indices = wrong.iter().enumerate().filter(|(_, wrong)| **wrong).map(|(index, _)| index);
    indices.clone().next()?;
    if let Some(size) = passing_size.and_then(|size| TILES.into_iter().rev().find(|tile| size.is_multiple_of(*tile))) {
        return (size < wrong.len()).then_some(Tile { size, seen_by: TileEvidence::Neighbour });
    }
    let seen = |size, seen_by| Tile { size, seen_by };
    tail_tile(wrong.len(), indices).map(|size| seen(size, TileEvidence::Tail)).or_else(|| {
        let edges: Vec<usize> = (1..wrong.len()).filter(|index| wrong[*index] != wrong[index - 1]).collect();
        let explains = |tile: &usize| !edges.is_empty() && edges.iter().all(|edge| edge.is_multiple_of(*tile));
        TILES.into_iter().rev().find(explains).map(|size| seen(size, TileEvidence::Edges))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(size: usize, wrong: impl Fn(usize) -> bool, passing: Option<usize>) -> Option<(usize, TileEvidence)> {
        let flags: Vec<bool> = (0..size).map(wrong).collect();
        tile_along(&flags, passing).map(|tile| (tile.size, tile.seen_by))
    }

    #[test]
    fn errors_behind_the_last_whole_tile_name_it() {
        assert_eq!(along(143, |index| index >= 128, None), Some((128, TileEvidence::Tail)));
        // Not every element of the tail has to be wrong.
        assert_eq!(along(200, |index| index == 197, None), Some((128, TileEvidence::Tail)));
        assert_eq!(along(100, |index| index >= 90, None), Some((64, TileEvidence::Tail)));
    }

    #[test]
    fn errors_of_whole_tiles_in_the_middle_name_it() {
        assert_eq!(along(256, |index| (32..96).contains(&index), None), Some((32, TileEvidence::Edges)));
        assert_eq!(along(256, |index| index < 64, None), Some((64, TileEvidence::Edges)));
        assert_eq!(along(256, |index| (33..96).contains(&index), None), None);
    }

    #[test]
    fn errors_everywhere_or_nowhere_show_no_tile() {
        assert_eq!(along(100, |_| true, None), None);
        assert_eq!(along(100, |_| false, Some(64)), None);
        assert_eq!(along(7, |index| index == 6, None), None);
        assert_eq!(along(0, |_| true, None), None);
    }

    #[test]
    fn a_passing_neighbour_says_more_than_the_errors() {
        // 128 and 64 both explain the tail of 143; that 64 passes and 65 fails tells which it is.
        assert_eq!(along(143, |index| index >= 128, Some(64)), Some((64, TileEvidence::Neighbour)));
        assert_eq!(along(143, |_| true, Some(64)), Some((64, TileEvidence::Neighbour)));
        assert_eq!(along(143, |_| true, Some(63)), None);
        assert_eq!(along(50, |_| true, Some(64)), None);
    }
}
