//! Convolutions, pools and scans.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use super::scan;
use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::{Plan, add_up, elements, input, read, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const SCALE: Mutation = Mutation::ScaleOutput(1.01);
const NARROW: Mutation = Mutation::NarrowAccumulator(DType::BF16);

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let named = Mutation::Named;
    let convolved = [
        Mutation::DropFactor,
        Mutation::FlipSign,
        Mutation::SkipElement,
        named("padding one short"),
        named("channels of the first group"),
        named("dilation ignored"),
        named("edge not masked"),
        NARROW,
        SCALE,
    ];
    let largest = [
        named("padding is 0"),
        named("NaN skipped"),
        named("last element of the window dropped"),
        named("window one off"),
        SCALE,
    ];
    let averaged = [
        named("padding counted the other way"),
        named("last element of the window dropped"),
        named("window one off"),
        NARROW,
        SCALE,
    ];
    let causal = [
        named("taps in reverse"),
        named("window one off"),
        named("activation left out"),
        Mutation::DropFactor,
        Mutation::SkipElement,
        SCALE,
    ];
    let mut families = vec![
        Family::new(kernel!("conv1d", conv1d), &ORDERS, &convolved),
        Family::new(kernel!("conv2d", conv2d), &ORDERS, &convolved),
        Family::new(kernel!("max_pool1d", max_pool1d), &ORDERS, &largest),
        Family::new(kernel!("max_pool2d", max_pool2d), &ORDERS, &largest),
        Family::new(kernel!("avg_pool1d", avg_pool1d), &ORDERS, &averaged),
        Family::new(kernel!("avg_pool2d", avg_pool2d), &ORDERS, &averaged),
        Family::new(kernel!("causal_conv1d", causal_conv1d), &ORDERS, &causal),
        Family::new(
            kernel!("causal_conv1d_update", causal_conv1d_update),
            &ORDERS,
            &[
                named("taps in reverse"),
                named("state before the step"),
                named("state not moved"),
                named("activation left out"),
                Mutation::DropFactor,
                SCALE,
            ],
        ),
    ];
    families.extend(scan::families());
    families
}

fn parameter(call: &Invocation<'_>, name: &str) -> usize {
    call.parameters.int(name).and_then(|value| usize::try_from(value).ok()).unwrap_or(0)
}

/// A convolution as an implicit product of matrices: rows are output positions, gathered into a patch each.
struct Patches<R> {
    image: Vec<R>,
    channels: usize,
    height: usize,
    width: usize,
    kernel: [usize; 2],
    padding: [isize; 2],
    dilation: usize,
    edges: bool,
}

impl<R: Real> Patches<R> {
    /// The patch of an output position: channel by channel, zero where it is padding.
    fn at(&self, first_plane: usize, top: isize, left: isize) -> Vec<R> {
        let mut patch = Vec::with_capacity(self.channels * self.kernel[0] * self.kernel[1]);
        for plane in first_plane..first_plane + self.channels {
            for down in 0..self.kernel[0] {
                for along in 0..self.kernel[1] {
                    let row = top - self.padding[0] + (down * self.dilation) as isize;
                    let column = left - self.padding[1] + (along * self.dilation) as isize;
                    patch.push(self.pixel(plane, row, column));
                }
            }
        }
        patch
    }

    fn pixel(&self, plane: usize, row: isize, column: isize) -> R {
        let inside = |place: isize, size: usize| place >= 0 && (place as usize) < size;
        if !inside(row, self.height) {
            return R::zero();
        }
        if !inside(column, self.width) && self.edges {
            return R::zero();
        }
        // Without a mask at the edge the neighbouring row is read.
        let place = ((plane * self.height) as isize + row) * self.width as isize + column;
        usize::try_from(place).ok().and_then(|place| self.image.get(place)).copied().unwrap_or(R::zero())
    }
}

fn conv1d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (length, taps) = (size(call, "L"), size(call, "K"));
    convolve::<R>(call, plan, [1, length], [1, taps], false)
}

fn conv2d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (image, kernel) = ([size(call, "H"), size(call, "W")], [size(call, "KH"), size(call, "KW")]);
    convolve::<R>(call, plan, image, kernel, true)
}

fn convolve<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    [height, width]: [usize; 2],
    kernel: [usize; 2],
    pads_rows: bool,
) -> Result<(), RunnerError> {
    let (weight, bias): (Vec<R>, Option<Vec<R>>) = (input(call, "weight")?, elements(call, "bias")?);
    let bias = bias.filter(|_| !plan.mutation.is(Mutation::DropFactor));
    let (groups, channels, filters) = (size(call, "G"), size(call, "C"), size(call, "O"));
    let stride = parameter(call, "stride");
    let dilation = if plan.mutation.named("dilation ignored") { 1 } else { parameter(call, "dilation") };
    let shift = isize::from(plan.mutation.named("padding one short"));
    let padding = parameter(call, "padding") as isize;
    let patches = Patches {
        image: input::<R>(call, "input")?,
        channels,
        height,
        width,
        kernel,
        padding: [if pads_rows { padding } else { 0 }, padding - if padding > 0 { shift } else { 0 }],
        dilation,
        edges: !plan.mutation.named("edge not masked"),
    };
    let shape = call.outputs[0].shape().to_vec();
    let columns = shape.last().copied().unwrap_or(0);
    let rows = if pads_rows { shape.get(2).copied().unwrap_or(0) } else { 1 };
    let depth = channels * kernel[0] * kernel[1];
    let mut values = Vec::new();
    for entry in 0..size(call, "N") {
        for filter in 0..groups * filters {
            let group = if plan.mutation.named("channels of the first group") { 0 } else { filter / filters.max(1) };
            for row in 0..rows {
                for column in 0..columns {
                    let first_plane = (entry * groups + group) * channels;
                    let patch = patches.at(first_plane, (row * stride) as isize, (column * stride) as isize);
                    let taps = &weight[filter * depth..][..depth];
                    let mut terms: Vec<R> = if plan.mutation.is(Mutation::FlipSign) {
                        // The kernel is flipped, as in what mathematics calls a convolution.
                        patch.iter().zip(taps.iter().rev()).map(|(x, w)| *x * *w).collect()
                    } else {
                        patch.iter().zip(taps).map(|(x, w)| *x * *w).collect()
                    };
                    if plan.mutation.is(Mutation::SkipElement) && terms.len() > 1 {
                        terms.remove(depth / 2);
                    }
                    if let Some(bias) = &bias {
                        terms.push(bias[filter]);
                    }
                    values.push(add_up(plan, &terms));
                }
            }
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

/// Every window of a pool with its elements that are not padding.
fn windows<R: Real>(
    call: &Invocation<'_>,
    plan: &Plan,
    [height, width]: [usize; 2],
    two: bool,
) -> Result<Vec<Vec<R>>, RunnerError> {
    let image: Vec<R> = input(call, "input")?;
    let (kernel, stride, padding) =
        (parameter(call, "kernel_size"), parameter(call, "stride"), parameter(call, "padding") as isize);
    let shape = call.outputs[0].shape();
    let columns = shape.last().copied().unwrap_or(0);
    let rows = if two { shape.get(2).copied().unwrap_or(0) } else { 1 };
    let taps = |place: usize, size: usize, padding: isize, kernel: usize| -> Vec<usize> {
        let off = isize::from(plan.mutation.named("window one off"));
        let first = (place * stride) as isize - padding + off;
        let all = (first..first + kernel as isize).filter_map(|place| usize::try_from(place).ok());
        all.filter(|place| *place < size).collect()
    };
    let mut windows = Vec::new();
    for plane in image.chunks((height * width).max(1)) {
        for row in 0..rows {
            let down = if two { taps(row, height, padding, kernel) } else { vec![0] };
            for column in 0..columns {
                let along = taps(column, width, padding, kernel);
                let mut window = Vec::with_capacity(down.len() * along.len());
                for row in &down {
                    window.extend(along.iter().map(|column| plane[row * width + column]));
                }
                if plan.mutation.named("last element of the window dropped") && window.len() > 1 {
                    window.pop();
                }
                windows.push(window);
            }
        }
    }
    Ok(windows)
}

fn max_pool1d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let windows: Vec<Vec<R>> = windows(call, plan, [1, size(call, "L")], false)?;
    let whole = parameter(call, "kernel_size");
    largest(call, plan, &windows, whole)
}

fn max_pool2d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let windows: Vec<Vec<R>> = windows(call, plan, [size(call, "H"), size(call, "W")], true)?;
    let whole = parameter(call, "kernel_size").pow(2);
    largest(call, plan, &windows, whole)
}

fn largest<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    windows: &[Vec<R>],
    whole: usize,
) -> Result<(), RunnerError> {
    let largest = |window: &Vec<R>| {
        let from_zero = plan.mutation.named("padding is 0") && window.len() < whole;
        let start = if from_zero { R::zero() } else { R::lowest() };
        let most = window.iter().fold(start, |most, x| most.larger(*x));
        let poisoned = window.iter().any(|x| x.is_nan()) && !plan.mutation.named("NaN skipped");
        if poisoned { R::new(f64::NAN) } else { most }
    };
    let values: Vec<R> = windows.iter().map(largest).collect();
    write(plan, &mut call.outputs[0], &values)
}

fn avg_pool1d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let windows: Vec<Vec<R>> = windows(call, plan, [1, size(call, "L")], false)?;
    let whole = parameter(call, "kernel_size");
    averages(call, plan, &windows, whole)
}

fn avg_pool2d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let windows: Vec<Vec<R>> = windows(call, plan, [size(call, "H"), size(call, "W")], true)?;
    let whole = parameter(call, "kernel_size").pow(2);
    averages(call, plan, &windows, whole)
}

fn averages<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    windows: &[Vec<R>],
    whole: usize,
) -> Result<(), RunnerError> {
    let swapped = plan.mutation.named("padding counted the other way");
    let with_padding = call.parameters.flag("count_include_pad") != swapped;
    let dropped = usize::from(plan.mutation.named("last element of the window dropped"));
    let average = |window: &Vec<R>| {
        let count = if with_padding { whole } else { window.len() + dropped };
        add_up(plan, window).over(R::new(count as f64), plan.style.division)
    };
    let values: Vec<R> = windows.iter().map(average).collect();
    write(plan, &mut call.outputs[0], &values)
}

/// v·σ(v) by the routes of the style.
pub(super) fn silu<R: Real>(plan: &Plan, v: R) -> R {
    let gate = R::one().over(R::one() + (-v).exp(plan.style.exp), plan.style.division);
    v * gate
}

/// The product of a window and a kernel, with bias and activation.
fn tap<R: Real>(plan: &Plan, window: &[R], kernel: &[R], bias: Option<R>, activated: bool) -> R {
    let reverse = plan.mutation.named("taps in reverse");
    let weight = |index: usize| if reverse { kernel[kernel.len() - 1 - index] } else { kernel[index] };
    let mut terms: Vec<R> = window.iter().enumerate().map(|(index, x)| *x * weight(index)).collect();
    if plan.mutation.is(Mutation::SkipElement) {
        terms.remove(0);
    }
    if let Some(bias) = bias.filter(|_| !plan.mutation.is(Mutation::DropFactor)) {
        terms.insert(0, bias);
    }
    let v = add_up(plan, &terms);
    if activated && !plan.mutation.named("activation left out") { silu(plan, v) } else { v }
}

fn causal_conv1d<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (x, weight): (Vec<R>, Vec<R>) = (input(call, "x")?, input(call, "weight")?);
    let (bias, initial): (Option<Vec<R>>, Option<Vec<R>>) =
        (elements(call, "bias")?, elements(call, "initial_states")?);
    let (channels, length, taps) = (size(call, "D"), size(call, "L"), size(call, "K"));
    let activated = call.parameters.flag("silu_activation");
    let (mut values, mut last) = (Vec::with_capacity(x.len()), Vec::new());
    for row in 0..size(call, "B") * channels {
        let channel = row % channels.max(1);
        let mut sequence = match &initial {
            Some(initial) => initial[row * (taps - 1)..][..taps - 1].to_vec(),
            None => vec![R::zero(); taps - 1],
        };
        sequence.extend_from_slice(&x[row * length..][..length]);
        let kernel = &weight[channel * taps..][..taps];
        let own = bias.as_ref().map(|bias| bias[channel]);
        for place in 0..length {
            // One off: the newest element is not seen.
            let start = if plan.mutation.named("window one off") { place.saturating_sub(1) } else { place };
            values.push(tap(plan, &sequence[start..start + taps], kernel, own, activated));
        }
        last.extend_from_slice(&sequence[length..]);
    }
    write(plan, &mut call.outputs[0], &values)?;
    match call.outputs.get_mut(1) {
        Some(states) => write(plan, states, &last),
        None => Ok(()),
    }
}

fn causal_conv1d_update<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (x, weight): (Vec<R>, Vec<R>) = (input(call, "x")?, input(call, "weight")?);
    let bias: Option<Vec<R>> = elements(call, "bias")?;
    let (channels, taps) = (size(call, "D"), size(call, "K"));
    let activated = call.parameters.flag("silu_activation");
    let mut state: Vec<R> = read(&call.outputs[1])?;
    let mut values = Vec::with_capacity(x.len());
    for (row, (newest, state)) in x.iter().zip(state.chunks_mut(taps.max(1))).enumerate() {
        let channel = row % channels.max(1);
        let old = state.to_vec();
        if !plan.mutation.named("state not moved") {
            state.rotate_left(1);
        }
        state[taps - 1] = *newest;
        let window = if plan.mutation.named("state before the step") { &old[..] } else { &state[..] };
        let own = bias.as_ref().map(|bias| bias[channel]);
        values.push(tap(plan, window, &weight[channel * taps..][..taps], own, activated));
    }
    write(plan, &mut call.outputs[0], &values)?;
    // The state is stored as it is: only the result can be scaled.
    let unscaled = Plan { mutation: None, ..*plan };
    write(&unscaled, &mut call.outputs[1], &state)
}
