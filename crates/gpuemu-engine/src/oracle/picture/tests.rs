use gpuemu_model::picture::TileEvidence;
use gpuemu_tensor::{DType, Tensor};
use proptest::prelude::*;

use super::*;
use crate::oracle::compare::Forgiven;
use crate::oracle::tolerance::Tolerance;
use crate::schema::Domain;

fn spec(dimensions: &[&str]) -> TensorSpec {
    TensorSpec {
        name: "out".to_string(),
        dtype: None,
        batch: true,
        dimensions: dimensions.iter().map(|name| Expression::Name(name.to_string())).collect(),
        domain: Domain::Real,
        optional: false,
    }
}

/// A float32 output of a shape that must be 1 everywhere, to within 0.5; `out` gives each element.
struct Output {
    spec: TensorSpec,
    shape: Vec<usize>,
    rule: Rule,
    bytes: Vec<u8>,
    expectation: Expectation,
}

impl Output {
    fn new(shape: &[usize], out: impl Fn(usize) -> f64) -> Self {
        let count = shape.iter().product();
        let values: Vec<f64> = (0..count).map(out).collect();
        let mut expectation = Expectation::default();
        values.iter().for_each(|_| expectation.push(1.0, 0.0));
        Self {
            spec: spec(&["H"]),
            shape: shape.to_vec(),
            rule: Rule::new(DType::F32, Tolerance::Fixed { atol: 0.5, rtol: 0.0 }),
            bytes: Tensor::from_f64(DType::F32, shape.to_vec(), &values).unwrap().to_contiguous_bytes(),
            expectation,
        }
    }

    fn drawn(&self) -> Drawn<'_> {
        let Self { spec, shape, rule, bytes, expectation } = self;
        Drawn { spec, shape, rule, bytes, expectation }
    }

    fn picture(&self) -> ErrorPicture {
        self.drawn().picture(None).unwrap()
    }
}

fn neighbour(fails: usize, passes: usize) -> Neighbour {
    Neighbour { dimension: "H".to_string(), fails, passes }
}

#[test]
fn a_dropped_tail_shows_as_the_last_columns_behind_a_tile() {
    let output = Output::new(&[2, 6, 143], |index| if index % 143 >= 128 { 0.0 } else { 1.0 });
    let picture = output.picture();
    assert_eq!((picture.mismatched, picture.elements), (2 * 6 * 15, 2 * 6 * 143));
    let map = &picture.map;
    // 143 columns are two a cell, so that the edge at 128 lies between cells.
    assert_eq!((map.width(), map.height(), map.row_step, map.column_step, map.entries), (72, 6, 1, 2, 2));
    for (place, cell) in map.cells.iter().enumerate() {
        let expected = if place % 72 >= 64 { ElementError::Share(2.0) } else { ElementError::Share(0.0) };
        assert_eq!(*cell, expected, "cell {place}");
        let ratio = map.ratios[place];
        assert!(if place % 72 >= 64 { ratio == 0.0 } else { ratio.is_nan() }, "cell {place}: {ratio}");
    }
    assert_eq!(picture.column_tile.unwrap().seen_by, TileEvidence::Tail);
    assert_eq!(picture.column_tile.unwrap().size, 128);
    assert_eq!(picture.row_tile, None);
    let told = output.drawn().picture(Some(&neighbour(65, 64))).unwrap();
    assert_eq!((told.column_tile.unwrap().size, told.column_tile.unwrap().seen_by), (64, TileEvidence::Neighbour));
    // One less, or a dim that the output does not have, says nothing about tiles.
    assert_eq!(output.drawn().picture(Some(&neighbour(63, 64))).unwrap().column_tile.unwrap().size, 128);
    let other = Neighbour { dimension: "K".to_string(), fails: 65, passes: 64 };
    assert_eq!(output.drawn().picture(Some(&other)).unwrap().column_tile.unwrap().size, 128);
}

#[test]
fn errors_are_counted_by_powers_of_two_and_what_is_allowed_stays_apart() {
    // Shares: 0, 0.25, exactly 1, just above, 6, and without a share NaN and infinity.
    let values = [1.0, 1.125, 1.5, 1.75, 4.0, f64::NAN, f64::INFINITY];
    let mut output = Output::new(&[7], |index| values[index]);
    let histogram = output.picture().histogram;
    let bins: Vec<(i32, usize)> = histogram.bins.iter().map(|bin| (bin.exponent, bin.count)).collect();
    assert_eq!(bins, [(-2, 1), (-1, 0), (0, 1), (1, 1), (2, 0), (3, 1)]);
    assert_eq!((histogram.exact, histogram.special, histogram.unbounded, histogram.powers), (1, 2, 0, 1));
    // Where nothing is allowed there is no share.
    output.rule.tolerance = Tolerance::Fixed { atol: 0.0, rtol: 0.0 };
    let histogram = output.picture().histogram;
    assert_eq!((histogram.exact, histogram.unbounded, histogram.bins.len()), (1, 4, 0));
    output.rule.forgiven = Forgiven { nan: true, infinity: true };
    let histogram = output.picture().histogram;
    assert_eq!((histogram.special, histogram.not_judged), (0, 2));
}

#[test]
fn wide_ranges_share_bins_that_meet_at_what_is_allowed() {
    let output = Output::new(&[300], |index| 1.0 + 0.5 * 2f64.powi(index as i32 / 3 - 4));
    let histogram = output.picture().histogram;
    assert!(histogram.powers > 1 && histogram.bins.len() <= MOST_BINS, "{histogram:?}");
    let right: usize = histogram.bins.iter().filter(|bin| bin.exponent <= 0).map(|bin| bin.count).sum();
    let counted: usize = histogram.bins.iter().map(|bin| bin.count).sum();
    assert_eq!(counted + histogram.exact, 300);
    assert_eq!(right + histogram.exact, 300 - output.picture().mismatched);
}

#[test]
fn the_window_lies_around_the_worst_element_and_inside_of_the_tensor() {
    let at = |row: usize, column: usize| {
        let worst = 9 * 11 + row * 11 + column;
        Output::new(&[2, 9, 11], move |index| if index == worst { 9.0 } else { 1.0 }).picture().window
    };
    let window = at(4, 5);
    assert_eq!((window.worst.as_slice(), window.first_row, window.first_column), ([1, 4, 5].as_slice(), 2, 2));
    assert_eq!((window.rows.len(), window.rows[0].len()), (5, 7));
    assert_eq!((window.rows[2][3].actual, window.rows[2][3].expected), (9.0, 1.0));
    let corner = at(8, 10);
    assert_eq!((corner.first_row, corner.first_column, corner.rows.len(), corner.rows[4][6].actual), (4, 4, 5, 9.0));
    // A scalar and a short vector have smaller ones.
    let scalar = Output { shape: Vec::new(), ..Output::new(&[1], |_| 3.0) }.picture();
    assert_eq!((scalar.window.rows.len(), scalar.window.rows[0].len(), scalar.window.worst.len()), (1, 1, 0));
    assert_eq!((scalar.map.rows, scalar.map.columns), (1, 1));
}

#[test]
fn an_output_without_errors_or_elements_has_no_picture() {
    assert_eq!(Output::new(&[4, 4], |_| 1.25).drawn().picture(None), None);
    assert_eq!(Output::new(&[4, 0], |_| 1.0).drawn().picture(None), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_cell_is_the_gravest_of_its_elements_and_no_element_is_lost(
        batch in 1usize..3,
        rows in 1usize..150,
        columns in 1usize..250,
        seed in any::<u64>(),
    ) {
        let value = |index: usize| match (index as u64).wrapping_mul(seed | 1) >> 59 {
            0 => 1.0 + index as f64,
            1 => f64::NAN,
            2 => 1.25,
            _ => 1.0,
        };
        let mut output = Output::new(&[batch, rows, columns], value);
        for (index, delta) in output.expectation.delta.iter_mut().enumerate() {
            if index % 7 == 3 {
                *delta = f64::NAN;
            }
        }
        let compared = output.rule.compare(&output.bytes, &output.expectation);
        let Some(picture) = output.drawn().picture(None) else {
            prop_assert_eq!(compared.mismatched, 0);
            return Ok(());
        };
        prop_assert_eq!(picture.mismatched, compared.mismatched);
        let errors = output.drawn().errors();
        let map = &picture.map;
        prop_assert!(map.width() <= MOST_CELLS.1 && map.height() <= MOST_CELLS.0);
        let mut reached = vec![false; map.cells.len()];
        for (index, error) in errors.iter().enumerate() {
            let (down, across) = (index / columns % rows / map.row_step, index % columns / map.column_step);
            let place = down * map.width() + across;
            prop_assert!(!error.exceeds(map.cells[place]), "no element is graver than its cell");
            reached[place] |= *error == map.cells[place];
        }
        prop_assert!(reached.iter().all(|reached| *reached), "a cell is the error of one of its elements");
        for profile in &picture.profiles {
            prop_assert_eq!(profile.mismatched.iter().sum::<usize>(), compared.mismatched);
        }
        let histogram = &picture.histogram;
        let binned: usize = histogram.bins.iter().map(|bin| bin.count).sum();
        let others = histogram.exact + histogram.unbounded + histogram.special + histogram.not_judged;
        prop_assert_eq!(binned + others, errors.len());
    }
}
