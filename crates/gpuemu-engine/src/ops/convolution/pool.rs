//! max_pool and avg_pool over windows of one or two dims.

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::{RowTotal, SUM_OVERFLOW};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

const ONE: &str = "-> out[N,C,(L+2*padding-kernel_size)/stride+1]";
const TWO: &str = "-> out[N,C,(H+2*padding-kernel_size)/stride+1,(W+2*padding-kernel_size)/stride+1]";
const WINDOW: &str = "kernel_size:int=2 stride:int=2 padding:int=0";

/// max_pool1d.
pub(in crate::ops) fn max_pool1d() -> BuiltIn {
    let signature = format!("input[N,C,L] {WINDOW} {ONE}");
    let schema = Schema::builtin("max_pool1d", &signature).alias(&["maxpool1d"]).at_least("L", LONGEST);
    BuiltIn::new(largest(schema), |call| expect_max(call, &Windows::one(call)?))
}

/// max_pool2d.
pub(in crate::ops) fn max_pool2d() -> BuiltIn {
    let signature = format!("input[N,C,H,W] {WINDOW} {TWO}");
    let schema = Schema::builtin("max_pool2d", &signature).alias(&["maxpool2d", "max_pool"]);
    let schema = plane(schema);
    BuiltIn::new(largest(schema), |call| expect_max(call, &Windows::two(call)?))
}

/// avg_pool1d.
pub(in crate::ops) fn avg_pool1d() -> BuiltIn {
    let signature = format!("input[N,C,L] {WINDOW} count_include_pad:bool=true {ONE}");
    let schema = Schema::builtin("avg_pool1d", &signature).alias(&["avgpool1d"]).at_least("L", LONGEST);
    BuiltIn::new(averaged(schema), |call| expect_average(call, &Windows::one(call)?))
}

/// avg_pool2d.
pub(in crate::ops) fn avg_pool2d() -> BuiltIn {
    let signature = format!("input[N,C,H,W] {WINDOW} count_include_pad:bool=true {TWO}");
    let schema = Schema::builtin("avg_pool2d", &signature).alias(&["avgpool2d", "avg_pool"]);
    let schema = plane(schema);
    BuiltIn::new(averaged(schema), |call| expect_average(call, &Windows::two(call)?))
}

/// The largest window of cases.
const LONGEST: usize = 5;

/// Sizes of images: without an upper end an empty batch of huge ones would cost nothing.
fn plane(schema: Schema) -> Schema {
    let schema = ["N", "C"].into_iter().fold(schema, |schema, dimension| schema.at_most(dimension, 128));
    ["H", "W"].into_iter().fold(schema, |schema, dimension| schema.at_least(dimension, LONGEST).at_most(dimension, 512))
}

fn largest(schema: Schema) -> Schema {
    shared(schema)
        .describe(
            "Largest element of each square window; padding is -Inf and never wins, NaN does. Windows that do not fit are left out (ceil_mode false), dilation is 1.",
            "out[n,c,i] = max_{k < kernel_size} input[n,c,i*stride-padding+k], in each dim",
        )
        .bounded_by("0: no rounding")
        .holds(&[Property::Homogeneous { input: "input", degree: 1 }])
        .usual_bugs(&["padding is 0 in place of -Inf", "NaN skipped", "last window dropped or out of bounds"])
}

fn averaged(schema: Schema) -> Schema {
    let choices = [Scalar::Bool(true), Scalar::Bool(false)];
    shared(schema)
        .choices("count_include_pad", &choices)
        .describe(
            "Mean of each square window; padding counts as zeros, or not at all where `count_include_pad` is false. Windows that do not fit are left out (ceil_mode false).",
            "out[n,c,i] = sum_{k < kernel_size} input[n,c,i*stride-padding+k]/count, in each dim; count is the window's size, or its elements that are not padding",
        )
        .help("count_include_pad", "whether padding counts in the divisor")
        .bounded_by("u*(F*sum|x|/count + 3*|y|), F over the window")
        .holds(&[Property::Homogeneous { input: "input", degree: 1 }])
        .amplified_by(&[Strategy::Integers, Strategy::Shifted])
        .usual_bugs(&["padding counted where it must not be", "last window dropped", "divided by the stride"])
}

fn shared(schema: Schema) -> Schema {
    let numbers = |values: &[i64]| values.iter().map(|value| Scalar::Int(*value)).collect::<Vec<_>>();
    schema
        .choices("kernel_size", &numbers(&[2, 3, LONGEST as i64]))
        .choices("stride", &numbers(&[2, 1, 3]))
        .choices("padding", &numbers(&[0, 1]))
        .help("kernel_size", "width of a window, the same in each dim, 1 or more")
        .help("stride", "distance between windows, 1 or more; frameworks take kernel_size where it is not given")
        .help("padding", "on each side, at most half of kernel_size")
        .keywords(&["cnn", "pooling", "downsample", "window"])
}

/// The windows of a call; in one dim the height is 1.
struct Windows {
    input: [usize; 2],
    kernel: [usize; 2],
    padding: [usize; 2],
    stride: usize,
    output: [usize; 2],
}

impl Windows {
    fn one(call: &Call<'_>) -> Result<Self, OpError> {
        Self::of(call, [1, call.size("L")?], [1, call.size("kernel_size")?], [0, call.size("padding")?])
    }

    fn two(call: &Call<'_>) -> Result<Self, OpError> {
        let (kernel, padding) = (call.size("kernel_size")?, call.size("padding")?);
        Self::of(call, [call.size("H")?, call.size("W")?], [kernel; 2], [padding; 2])
    }

    fn of(call: &Call<'_>, input: [usize; 2], kernel: [usize; 2], padding: [usize; 2]) -> Result<Self, OpError> {
        let stride = call.size("stride")?;
        let mut output = [0; 2];
        for axis in 0..2 {
            let room = (input[axis] + 2 * padding[axis]).checked_sub(kernel[axis]);
            // A stride of 0 or a window longer than its input has no output shape, and no case gets here.
            let steps = room.and_then(|room| room.checked_div(stride));
            output[axis] = steps.ok_or_else(|| OpError::MissingSize("stride".to_string()))? + 1;
        }
        Ok(Self { input, kernel, padding, stride, output })
    }

    /// The elements of every window that are not padding, plane after plane.
    fn each(&self, input: &[f64], mut visit: impl FnMut(&[f64])) {
        let [height, width] = self.input;
        let mut window = Vec::with_capacity(self.kernel[0] * self.kernel[1]);
        for plane in input.chunks_exact((height * width).max(1)) {
            for row in 0..self.output[0] {
                for column in 0..self.output[1] {
                    window.clear();
                    for down in self.inside(0, row) {
                        let along = self.inside(1, column);
                        window.extend_from_slice(&plane[down * width..][along]);
                    }
                    visit(&window);
                }
            }
        }
    }

    /// The part of a window along an axis that is not padding.
    fn inside(&self, axis: usize, output: usize) -> std::ops::Range<usize> {
        let start = output * self.stride;
        let end = (start + self.kernel[axis]).saturating_sub(self.padding[axis]).min(self.input[axis]);
        start.saturating_sub(self.padding[axis]).min(end)..end
    }
}

fn expect_max(call: &Call<'_>, windows: &Windows) -> Result<Vec<Expectation>, OpError> {
    let mut expectation = Expectation::default();
    windows.each(call.input("input")?, |window| {
        let poisoned = window.iter().any(|x| x.is_nan());
        let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        expectation.push(if poisoned { f64::NAN } else { largest }, call.units.flush);
    });
    Ok(vec![expectation])
}

fn expect_average(call: &Call<'_>, windows: &Windows) -> Result<Vec<Expectation>, OpError> {
    let whole = windows.kernel[0] * windows.kernel[1];
    let (units, summation) = (call.units, call.summation(whole.max(1))?);
    let with_padding = call.flag("count_include_pad");
    let mut expectation = Expectation::default();
    windows.each(call.input("input")?, |window| {
        let count = (if with_padding { whole } else { window.len() }) as f64;
        let total = RowTotal::of(window);
        let y = total.sum / count;
        // A division or a multiplication with 1/count, within Q/2 + 1 roundings.
        let condition = total.error(summation, window, units.exact) / count + 3.0 * y.abs();
        let delta = units.u * condition + units.eta + (whole + 1) as f64 * units.flush;
        if overflows(total.absolute, units.max) {
            expectation.push_overflow(y, delta, SUM_OVERFLOW, "sum of |x| of a window");
        } else {
            expectation.push(y, delta);
        }
    });
    Ok(vec![expectation])
}
