//! Values of tensors by strategy. From stream to tensor only integer operations and IEEE
//! `+ - * /`, floor and conversions are used, so the bytes are the same on every machine.
//! Mirrored in `python/gpuemu/rng.py`; both are checked against `testdata/rng_vectors.json`.

use gpuemu_tensor::float_format::power_of_two;
use gpuemu_tensor::rng::{bell, unit};
use gpuemu_tensor::{DType, FloatFormat, Stream};

pub use gpuemu_model::strategy::{Strategy, UnknownStrategy};

/// A strategy with everything decided that one tensor needs: a function from word to value.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    /// `low + width·unit`.
    Uniform {
        low: f64,
        /// Upper minus lower end.
        width: f64,
    },
    Bell,
    /// ± a mantissa in [1, 2) times two to an exponent in `lowest..lowest + span`.
    Exponents {
        lowest: i32,
        span: u64,
    },
    /// Half of the elements from a table, the others uniform in [−10, 10).
    Table(Vec<f64>),
    /// One element in eight uniform in [−10, 10) or, if given, this value; the others zero.
    Sparse {
        /// The one value that is not zero.
        repeated: Option<f64>,
    },
    /// One element in eight close to `top`, the others in [−10, 0).
    Clustered {
        /// Where the maxima are.
        top: f64,
    },
    /// Whole numbers in `−reach..=reach`.
    Integers {
        reach: u64,
    },
    /// Uniform in [−10, 10) with NaN, ±Inf or whole −Inf tiles of 64.
    Special {
        /// NaN in one element of this many; 0 for none.
        nan: u64,
        /// ±Inf in one element of this many; 0 for none.
        infinite: u64,
        /// Decides which quarter of the tiles is −Inf; `None` for no tile.
        tiles: Option<u64>,
    },
    /// Whole numbers in `low..high`, its ends more often when `edges`, or another one.
    Range {
        low: f64,
        count: f64,
        /// Whether one element in four is an end.
        edges: bool,
        /// What one element in eight is in their place.
        other: Option<f64>,
    },
    /// Zero or one; one element in `zeros` is zero.
    Flags {
        zeros: u64,
    },
}

/// Decides a recipe for a real-valued tensor from a resolved strategy.
pub fn recipe(strategy: Strategy, dtype: DType, case_seed: u64, input: &str) -> Recipe {
    let format = dtype.float_format().copied().unwrap_or(FloatFormat::F32);
    let mut stream = Stream::new(case_seed, &format!("values/{input}"));
    let ten = Recipe::Uniform { low: -10.0, width: 20.0 };
    match strategy {
        Strategy::Default | Strategy::Adversarial => ten,
        Strategy::Regular => match stream.below(3) {
            0 => ten,
            1 => Recipe::Uniform { low: -1.0, width: 2.0 },
            _ => Recipe::Bell,
        },
        Strategy::Boundary => Recipe::Table(boundary_table(&format, stream.chance(1, 2))),
        Strategy::Large => {
            if stream.chance(1, 2) {
                let reach = (format.max_value() / 2.0).min(1000.0);
                Recipe::Uniform { low: -reach, width: 2.0 * reach }
            } else {
                let lowest = format.max_exponent() / 2;
                Recipe::Exponents { lowest, span: (format.max_exponent() - lowest) as u64 }
            }
        }
        Strategy::Tiny => {
            if stream.chance(2, 3) {
                let reach = power_of_two(-5 - stream.below(12) as i32);
                Recipe::Uniform { low: -reach, width: 2.0 * reach }
            } else {
                let lowest = format.min_exponent() - format.mantissa_bits as i32;
                Recipe::Exponents { lowest, span: u64::from(format.mantissa_bits) + 4 }
            }
        }
        Strategy::Mixed => {
            if stream.chance(2, 3) {
                let lowest = (-10).max(format.min_exponent());
                Recipe::Exponents { lowest, span: (format.max_exponent().min(11) - lowest) as u64 }
            } else {
                let lowest = format.min_exponent() / 2;
                Recipe::Exponents { lowest, span: (format.max_exponent() / 2 - lowest) as u64 }
            }
        }
        Strategy::Shifted => {
            let mean = [4.0, 100.0, -100.0, -10.0, 16.0][stream.below(5) as usize];
            let deviation = [1.0, 0.125][stream.below(2) as usize];
            Recipe::Uniform { low: mean - deviation, width: 2.0 * deviation }
        }
        Strategy::Sparse => {
            let value = -10.0 + 20.0 * unit(stream.next_word());
            Recipe::Sparse { repeated: stream.chance(1, 2).then_some(value) }
        }
        Strategy::Clustered => Recipe::Clustered { top: [2.0, 8.0, 30.0][stream.below(3) as usize] },
        Strategy::Integers => Recipe::Integers { reach: [1, 2, 3, 8][stream.below(4) as usize] },
        Strategy::Special => match stream.below(4) {
            0 => Recipe::Special { nan: 256, infinite: 0, tiles: None },
            1 => Recipe::Special { nan: 0, infinite: 128, tiles: None },
            2 => Recipe::Special { nan: 0, infinite: 0, tiles: Some(stream.next_word()) },
            _ => Recipe::Special { nan: 512, infinite: 256, tiles: Some(stream.next_word()) },
        },
        Strategy::NanInjected => Recipe::Special { nan: 64, infinite: 0, tiles: None },
    }
}

/// Decides a recipe for whole numbers in `low..high`.
pub fn range_recipe(strategy: Strategy, low: usize, high: usize) -> Recipe {
    let (count, edges) = (high.saturating_sub(low) as f64, strategy == Strategy::Boundary);
    Recipe::Range { low: low as f64, count, edges, other: None }
}

/// Decides a recipe for whole numbers of every size that an integer dtype has.
pub fn whole_recipe(strategy: Strategy, dtype: DType) -> Recipe {
    let (low, high) = (dtype.decode(dtype.encode(f64::NEG_INFINITY)), dtype.decode(dtype.encode(f64::INFINITY)));
    match strategy {
        Strategy::Integers => Recipe::Integers { reach: 3 },
        Strategy::Sparse => Recipe::Sparse { repeated: Some(high) },
        _ => Recipe::Range { low, count: high - low + 1.0, edges: strategy == Strategy::Boundary, other: None },
    }
}

/// Decides a recipe for a boolean tensor.
pub fn flag_recipe(case_seed: u64, input: &str) -> Recipe {
    let mut stream = Stream::new(case_seed, &format!("values/{input}"));
    Recipe::Flags { zeros: [2, 4, 8, 64][stream.below(4) as usize] }
}

fn boundary_table(format: &FloatFormat, with_extremes: bool) -> Vec<f64> {
    let step = format.unit_roundoff() * 2.0;
    let mut table = vec![
        0.0,
        -0.0,
        format.min_subnormal(),
        -format.min_subnormal(),
        format.min_normal() - format.min_subnormal(),
        format.min_normal(),
        -format.min_normal(),
        1.0,
        -1.0,
        1.0 + step,
        1.0 - step / 2.0,
        -1.0 - step,
        2.0 - step,
        1.5 + step,
    ];
    if with_extremes {
        let max = format.max_value();
        table.extend([max, -max, max / 2.0, -max / 2.0, max / 4.0]);
    }
    table
}

impl Recipe {
    /// A range with another number in one element of eight, where there is one.
    pub fn or(mut self, number: Option<i64>) -> Self {
        if let Recipe::Range { other, .. } = &mut self {
            *other = number.map(|number| number as f64);
        }
        self
    }

    /// The value of element `index` from its word.
    #[inline(always)]
    pub fn value(&self, word: u64, index: usize) -> f64 {
        match self {
            Recipe::Uniform { low, width } => low + width * unit(word),
            Recipe::Bell => bell(word),
            Recipe::Exponents { lowest, span } => {
                let exponent = lowest + ((((word >> 1) & 0x7ff) * span) >> 11) as i32;
                let magnitude = (1.0 + unit(word)) * power_of_two(exponent);
                if word & 1 == 1 { -magnitude } else { magnitude }
            }
            Recipe::Table(table) => {
                if word & 1 == 1 {
                    return -10.0 + 20.0 * unit(word);
                }
                let choice = (((word >> 1) & 0x7ff) * table.len() as u64) >> 11;
                table.get(choice as usize).copied().unwrap_or(0.0)
            }
            Recipe::Sparse { repeated } => {
                if word & 7 != 0 {
                    return 0.0;
                }
                repeated.unwrap_or(-10.0 + 20.0 * unit(word))
            }
            Recipe::Clustered { top } => {
                if word & 7 == 0 {
                    top + (unit(word) - 0.5) * 0.02
                } else {
                    -10.0 + 10.0 * unit(word)
                }
            }
            Recipe::Integers { reach } => {
                let reach = *reach as f64;
                ((2.0 * reach + 1.0) * unit(word)).floor() - reach
            }
            Recipe::Special { nan, infinite, tiles } => {
                if let Some(salt) = tiles {
                    let tile = (index as u64 / 64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(*salt);
                    if tile >> 62 == 0 {
                        return f64::NEG_INFINITY;
                    }
                }
                let draw = word & 0x7ff;
                if *nan != 0 && draw.is_multiple_of(*nan) {
                    return f64::NAN;
                }
                if *infinite != 0 && draw % infinite == 1 {
                    return if word & 0x800 != 0 { f64::INFINITY } else { f64::NEG_INFINITY };
                }
                -10.0 + 20.0 * unit(word)
            }
            Recipe::Range { low, count, edges, other } => {
                // Bits of their own, so that the other elements are those of the range alone.
                if let Some(other) = other.filter(|_| (word >> 3) & 7 == 0) {
                    return other;
                }
                if *edges && word & 3 == 0 {
                    return if word & 4 == 0 { *low } else { low + (count - 1.0).max(0.0) };
                }
                low + (count * unit(word)).floor()
            }
            Recipe::Flags { zeros } => f64::from(u8::from(!(word >> 12).is_multiple_of(*zeros))),
        }
    }
}
