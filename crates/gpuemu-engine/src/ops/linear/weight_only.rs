//! Products with weights of 8 or 4 bits that are dequantised on the way: W8A16 and W4A16.

use super::product::{Products, push, transposed};
use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::{BuiltIn, Call, Expectation, OpError, Overflow};
use crate::schema::{Property, Schema};

/// w8a16_matmul.
pub(in crate::ops) fn eight_bits() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "w8a16_matmul",
            "a[M,K] weight:int8[N,K] in whole scale[N] in positive bias?[N] -> out[M,N]",
        )
        .alias(&["int8_weight_only_matmul", "weight_int8pack_mm"])
        .describe(
            "Activations times the transpose of int8 weights with one scale per output channel, in the dtype of the \
            activations. The scale may be applied to each weight or to the sum; a kernel that rounds the dequantised \
            weight to a narrow dtype declares it as intermediate.",
            "out[i,j] = (sum_k a[i,k]*weight[j,k])*scale[j] + bias[j]",
        )
        .help("weight", "one row per output channel")
        .help("scale", "one per output channel, in the dtype of the case")
        .help("bias", "one per output channel; nothing is added where it is absent")
        .keywords(&["gemm", "quantised", "dequantise", "weight only", "linear"])
        .reduces(&["K"])
        .at_least("K", 1)
        .bounded_by("u*((F(K+1) + 2)*scale*sum_k |a||weight| + F(K+1)*|bias|), + u_mid*scale*sum_k |a||weight|")
        .holds(&[Property::Linear { input: "a" }, Property::Homogeneous { input: "a", degree: 1 }])
        .amplified_by(&[Strategy::Integers, Strategy::Regular])
        .usual_bugs(&["weight read as uint8", "scale of a neighbouring channel", "K tail not masked"]),
        expect_eight,
    )
}

/// w4a16_matmul.
pub(in crate::ops) fn four_bits() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "w4a16_matmul",
            "a[M,Q*S] weight:uint8[Q*S/2,N] in whole scales[Q,N] in positive zeros?:uint8[Q,N] in 0..16 -> out[M,N]",
        )
        .alias(&["int4_weight_only_matmul", "awq_gemm", "gptq_gemm", "weight_int4pack_mm"])
        .describe(
            "Activations times 4-bit weights, two to a byte along K with the lower nibble first, with a scale (in \
            the dtype of the case) and a zero point per group of S along K and column. Without zeros the zero point \
            is 8. A kernel that rounds the dequantised weight to a narrow dtype declares it as intermediate; one \
            that takes the zero point out of the sum declares folded.",
            "out[i,j] = sum_k a[i,k]*(w4[k,j] - zeros[k/S,j])*scales[k/S,j], w4[k,j] = nibble k%2 of weight[k/2,j]",
        )
        .help(
            "weight",
            "byte r of a column holds k = 2r in its lower and k = 2r + 1 in its upper nibble, each 0 to \
            15",
        )
        .help("scales", "one per group of S numbers along K and column, in the dtype of the case")
        .help("zeros", "the nibble that stands for 0, per group and column; 8 where absent")
        .keywords(&["gemm", "quantised", "dequantise", "weight only", "int4", "group", "awq", "gptq", "marlin"])
        .sizes("S", &[32, 64, 128])
        .at_least("Q", 1)
        .at_most("Q", 32)
        .reduces(&["Q"])
        .bounded_by(
            "u*((F + 2)*sum_k |a||w4 - zero|*scale + 2*sum_k |a|(w4 + zero)*scale), F = max(F(K), F(S) + K/S), + \
            u_mid*sum_k |a||w4 - zero|*scale; folded: (w4 + zero) in place of |w4 - zero|",
        )
        .holds(&[Property::Linear { input: "a" }, Property::Homogeneous { input: "a", degree: 1 }])
        .amplified_by(&[Strategy::Integers, Strategy::Regular])
        .usual_bugs(&[
            "nibbles in the wrong order",
            "scale of the neighbouring group at a group's edge",
            "zero point off by one",
            "nibble read as signed",
        ]),
        expect_four,
    )
}

fn expect_eight(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, weight, scale) = (call.input("a")?, call.input("weight")?, call.input("scale")?);
    let (rows, inner, columns) = (call.size("M")?, call.size("K")?, call.size("N")?);
    let whole = transposed(weight, columns, inner);
    let dequantised = |k: usize, column: usize| Dequantised {
        value: whole[k * columns + column] * scale[column],
        parts: 0.0,
        unscaled: whole[k * columns + column],
        whole: whole[k * columns + column].abs(),
        scale: scale[column],
    };
    let weights = Weights::of(rows, inner, columns, dequantised);
    let summation = call.summation(inner.max(1) + 1)?;
    weights.expect(call, a, summation, call.optional("bias"))
}

fn expect_four(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, weight, scales, zeros) =
        (call.input("a")?, call.input("weight")?, call.input("scales")?, call.optional("zeros"));
    let (rows, groups, group, columns) = (call.size("M")?, call.size("Q")?, call.size("S")?, call.size("N")?);
    let inner = groups * group;
    let dequantised = |k: usize, column: usize| {
        let byte = weight[k / 2 * columns + column] as u8;
        let nibble = f64::from(if k.is_multiple_of(2) { byte & 15 } else { byte >> 4 });
        let place = k / group.max(1) * columns + column;
        let (zero, scale) = (zeros.map_or(8.0, |zeros| zeros[place]), scales[place]);
        Dequantised {
            value: (nibble - zero) * scale,
            parts: (nibble + zero) * scale,
            unscaled: nibble - zero,
            whole: (nibble + zero).max(1.0),
            scale,
        }
    };
    let weights = Weights::of(rows, inner, columns, dequantised);
    let summation = call.summation(inner.max(1))?.max(call.summation(group.max(1))? + groups as f64);
    weights.expect(call, a, summation, None)
}

struct Dequantised {
    value: f64,
    /// What its two parts, the number and the zero point, are together.
    parts: f64,
    unscaled: f64,
    /// Its two parts without the scale, and at least 1: the activations may be summed on their own.
    whole: f64,
    scale: f64,
}

/// A matrix of dequantised weights.
struct Weights {
    rows: usize,
    inner: usize,
    columns: usize,
    values: Vec<f64>,
    parts: Vec<f64>,
    unscaled: Vec<f64>,
    whole: Vec<f64>,
    scales: Vec<f64>,
}

impl Weights {
    fn of(rows: usize, inner: usize, columns: usize, weight: impl Fn(usize, usize) -> Dequantised) -> Self {
        let blank = || Vec::with_capacity(inner * columns);
        let (mut values, mut parts, mut unscaled, mut whole, mut scales) =
            (blank(), blank(), blank(), blank(), blank());
        for place in 0..inner * columns {
            let one = weight(place / columns, place % columns);
            values.push(one.value);
            parts.push(one.parts);
            unscaled.push(one.unscaled);
            whole.push(one.whole);
            scales.push(one.scale);
        }
        Self { rows, inner, columns, values, parts, unscaled, whole, scales }
    }

    fn expect(
        &self,
        call: &Call<'_>,
        a: &[f64],
        summation: f64,
        bias: Option<&[f64]>,
    ) -> Result<Vec<Expectation>, OpError> {
        let Self { rows, inner, columns, .. } = *self;
        let units = call.units;
        // A float64 reference rounds as often as the kernel does.
        let sides = if units.reference > 0.0 { 2.0 } else { 1.0 };
        let of = |matrix| Products::of(call, a, matrix, rows, inner, columns);
        let product = of(&self.values);
        // Where the scale comes after the sum, what is summed is not scaled.
        let folded = call.precision.folded;
        let unscaled = of(if folded { &self.whole } else { &self.unscaled }).magnitudes;
        let parts = of(&self.parts).magnitudes;
        // A scale that is subnormal makes a weight lose digits, and what it is multiplied with may be large.
        let small = units.tiny * 256.0;
        let lost: Vec<f64> = self.scales.iter().map(|scale| f64::from(u8::from(*scale < small))).collect();
        let lost = of(&lost).magnitudes;
        let infinite: Vec<bool> = (0..columns).map(|column| self.largest_scale(column).is_infinite()).collect();
        let narrow = self.overflowing_columns(units.mid_max);
        let wide = self.overflowing_columns(units.max);
        let mut expectation = Expectation::with_capacity(product.values.len());
        for index in 0..product.values.len() {
            let column = index % columns;
            let addend = bias.map_or(0.0, |bias| bias[column]);
            let mut y = product.element(call, index, addend, summation + 2.0 * sides);
            if y.value.is_finite() && y.error > 0.0 {
                let share = if folded { units.u * summation + units.mid } else { 2.0 * sides * units.u };
                let flushed = (units.eta + units.flush) * (2.0 * lost[index] + 1.0);
                // Flushed terms are scaled afterwards.
                let after = units.flush * self.largest_scale(column) * inner as f64;
                y = y.widened(share * parts[index] + flushed + after);
            }
            if y.value.is_finite() && units.mid > 0.0 {
                let coarse = units.mid_eta * self.absolute_row(a, index / columns);
                y = y.widened(units.mid * product.magnitudes[index] + coarse);
            }
            let summed = if folded { unscaled[index].max(parts[index]) } else { unscaled[index] };
            let large = overflows(summed, units.max) || narrow[column] || wide[column];
            // Infinities meet in another order where the scale comes later, or the zero point.
            let other = infinite[column] || folded && y.value.is_infinite();
            // In float64 the reference overflows with the kernel.
            if (y.value.is_finite() || units.reference > 0.0) && large || other {
                y.overflow = Overflow::Before;
            }
            push(&mut expectation, y, "|a||weight|");
        }
        Ok(vec![expectation])
    }

    fn overflowing_columns(&self, max: f64) -> Vec<bool> {
        let beyond = |row: usize, column: usize| {
            let place = row * self.columns + column;
            overflows(self.values[place].abs().max(self.parts[place]), max) && self.scales[place].is_finite()
        };
        (0..self.columns).map(|column| (0..self.inner).any(|row| beyond(row, column))).collect()
    }

    fn largest_scale(&self, column: usize) -> f64 {
        self.scales
            .iter()
            .skip(column)
            .step_by(self.columns.max(1))
            .fold(0.0, |largest: f64, scale| largest.max(*scale))
    }

    fn absolute_row(&self, a: &[f64], row: usize) -> f64 {
        a[row * self.inner..][..self.inner].iter().map(|x| x.abs()).sum()
    }
}
