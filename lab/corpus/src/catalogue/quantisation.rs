//! To narrow formats and back.

use gpuemu_engine::runner::{Invocation, RunnerError};

use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Kernel, Plan, elements, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let scale = Mutation::ScaleOutput(1.01);
    let late = Mutation::Named("rounded up from 0.7 only");
    let dynamic = [
        scale,
        Mutation::Constant(128.0 / 127.0),
        Mutation::DropTail(32),
        Mutation::SkipElement,
        Mutation::Named("largest in place of largest magnitude"),
        Mutation::Named("eps added"),
    ];
    let given = [
        scale,
        Mutation::Constant(1.01),
        Mutation::Named("multiplied by the scale"),
        Mutation::Named("not clamped"),
        Mutation::Named("neighbour's scale"),
    ];
    // Groups are multiples of 16: a tail needs other tiles.
    let mut grouped = dynamic;
    grouped[2] = Mutation::DropTail(24);
    // One step of float8 is an eighth of a number: what is less cannot be told from rounding.
    let coarse = [Mutation::ScaleOutput(1.5), Mutation::Constant(0.5), given[2], given[3], Mutation::FlipSign];
    let affine = [late, Mutation::Named("zero point subtracted"), Mutation::Named("clamped to -127")];
    let back = [
        scale,
        Mutation::Constant(1.01),
        Mutation::Named("divided by the scale"),
        Mutation::Named("neighbour's scale"),
        Mutation::Named("tail left at zero"),
    ];
    let zero = [Mutation::Named("zero point added"), Mutation::Named("code read as unsigned")];
    let nibbles = [Mutation::Named("upper nibble first"), Mutation::Named("offset missing")];
    let ub = [Mutation::Named("upper bound ignored"), Mutation::Named("not clamped")];
    let family = |kernel: Kernel, mutants: &[&[Mutation]]| Family::new(kernel, &ROUTES, &mutants.concat());
    let one = |mutants: &[Mutation]| -> Vec<Mutation> {
        mutants.iter().copied().filter(|mutation| *mutation != Mutation::Named("neighbour's scale")).collect()
    };
    vec![
        family(kernel!("quantize_int8_per_token", int8_per_token), &[&dynamic, &[late]]),
        family(kernel!("dequantize_int8_per_token", from_int8_rows), &[&back, &zero[1..]]),
        family(kernel!("quantize_int8_per_tensor", int8_per_tensor), &[&one(&given), &affine]),
        family(kernel!("dequantize_int8_per_tensor", from_int8_tensor), &[&one(&back), &zero]),
        family(kernel!("quantize_int8_per_channel", int8_per_channel), &[&given, &affine]),
        family(kernel!("dequantize_int8_per_channel", from_int8_channels), &[&back, &zero]),
        family(kernel!("quantize_int4_per_group", int4_per_group), &[&grouped[1..], &[late], &nibbles]),
        family(kernel!("dequantize_int4_per_group", from_int4_groups), &[&back, &nibbles, &zero[..1]]),
        family(kernel!("quantize_fp8_per_token", fp8_per_token), &[&dynamic, &ub]),
        family(kernel!("quantize_fp8_per_block", fp8_per_block), &[&grouped]),
        family(kernel!("quantize_fp8_static", fp8_static), &[&coarse]),
        family(kernel!("dequantize_fp8_per_token", from_fp8_rows), &[&back]),
        family(kernel!("dequantize_fp8_per_block", from_fp8_blocks), &[&back]),
    ]
}

/// The scale of a row, and what its numbers are multiplied with or divided by.
struct RowScale<R> {
    scale: R,
    /// levels/max|x|, where the kernel multiplies.
    inverse: Option<R>,
}

impl<R: Real> RowScale<R> {
    fn of(plan: &Plan, row: &[R], levels: f64, eps: f64, upper: f64) -> Self {
        let width = row.len();
        let end = match plan.mutation {
            Some(Mutation::DropTail(tile)) if width > tile => width / tile * tile,
            _ => width,
        };
        let signed = plan.mutation.named("largest in place of largest magnitude");
        let skipped = if plan.mutation.is(Mutation::SkipElement) && width > 1 { width / 2 } else { usize::MAX };
        // Lanes first, then the lanes: a maximum is the same in every order.
        let mut lanes = [R::zero(); 8];
        for (place, x) in row[..end].iter().enumerate().filter(|(place, _)| *place != skipped) {
            lanes[place % 8] = lanes[place % 8].larger(if signed { *x } else { x.abs() });
        }
        let mut largest = lanes.into_iter().fold(R::zero(), Real::larger);
        if upper > 0.0 && !plan.mutation.named("upper bound ignored") && largest > R::new(upper) {
            largest = R::new(upper);
        }
        largest = if plan.mutation.named("eps added") { largest + R::new(eps) } else { largest.larger(R::new(eps)) };
        let levels = R::new(levels * plan.mutation.constant());
        let inverse = (plan.style.division == Division::Approximate && largest > R::zero())
            .then(|| levels.over(largest, plan.style.division));
        Self { scale: largest.over(levels, plan.style.division), inverse }
    }

    fn quotient(&self, plan: &Plan, x: R) -> R {
        if self.scale.value() == 0.0 && x.value() == 0.0 {
            return R::zero();
        }
        self.inverse.map_or_else(|| x.over(self.scale, plan.style.division), |inverse| x * inverse)
    }
}

/// Rounded to a whole number and clamped; a conversion of NaN gives 0.
fn code<R: Real>(plan: &Plan, quotient: R, zero: f64, low: f64, high: f64) -> f64 {
    let value = quotient.value();
    let late = (value.abs() + 0.3).trunc().copysign(value);
    let whole = if plan.mutation.named("rounded up from 0.7 only") { late } else { value.round_ties_even() };
    let moved = if plan.mutation.named("zero point subtracted") { whole - zero } else { whole + zero };
    let low = if plan.mutation.named("clamped to -127") { low + 1.0 } else { low };
    if moved.is_nan() {
        return 0.0;
    }
    if plan.mutation.named("not clamped") {
        return f64::from(moved as i32 as i8);
    }
    moved.clamp(low, high)
}

/// Clamped to what float8 has.
fn clamped<R: Real>(plan: &Plan, quotient: R) -> R {
    let limit = R::new(448.0);
    if plan.mutation.named("not clamped") || quotient.is_nan() {
        quotient
    } else if quotient > limit {
        limit
    } else if quotient < -limit {
        -limit
    } else {
        quotient
    }
}

fn eps(call: &Invocation<'_>) -> f64 {
    call.parameters.float("eps").unwrap_or(1e-10)
}

fn int8_per_token<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let numbers: Vec<R> = input(call, "input")?;
    let (mut codes, mut scales) = (Vec::with_capacity(numbers.len()), Vec::new());
    for row in numbers.chunks(size(call, "H").max(1)) {
        let scale = RowScale::of(plan, row, 127.0, eps(call), 0.0);
        codes.extend(row.iter().map(|x| code(plan, scale.quotient(plan, *x), 0.0, -127.0, 127.0)));
        scales.push(scale.scale);
    }
    write(plan, &mut call.outputs[0], &codes)?;
    write(plan, &mut call.outputs[1], &scales)
}

fn int4_per_group<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let numbers: Vec<R> = input(call, "input")?;
    let (mut bytes, mut scales): (Vec<f64>, Vec<R>) = (Vec::with_capacity(numbers.len() / 2), Vec::new());
    for group in numbers.chunks(size(call, "group_size").max(2)) {
        let scale = RowScale::of(plan, group, 7.0, eps(call), 0.0);
        let nibble = |x: R| {
            let whole = code(plan, scale.quotient(plan, x), 0.0, -8.0, 7.0) as i64;
            if plan.mutation.named("offset missing") { whole & 15 } else { whole + 8 }
        };
        for pair in group.chunks(2) {
            let (first, second) = (nibble(pair[0]), nibble(pair[1]));
            let swapped = plan.mutation.named("upper nibble first");
            bytes.push(if swapped { second | (first << 4) } else { first | (second << 4) } as f64);
        }
        scales.push(scale.scale);
    }
    write(plan, &mut call.outputs[0], &bytes)?;
    write(plan, &mut call.outputs[1], &scales)
}

fn fp8<R: Real>(call: &mut Invocation<'_>, plan: &Plan, width: usize, upper: f64) -> Result<(), RunnerError> {
    let numbers: Vec<R> = input(call, "input")?;
    let (mut narrow, mut scales) = (Vec::with_capacity(numbers.len()), Vec::new());
    for row in numbers.chunks(width.max(1)) {
        let scale = RowScale::of(plan, row, 448.0, eps(call), upper);
        narrow.extend(row.iter().map(|x| clamped(plan, scale.quotient(plan, *x))));
        scales.push(scale.scale);
    }
    write(plan, &mut call.outputs[0], &narrow)?;
    write(plan, &mut call.outputs[1], &scales)
}

fn fp8_per_token<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let upper = call.parameters.float("scale_ub").unwrap_or(0.0);
    fp8::<R>(call, plan, size(call, "H"), upper)
}

fn fp8_per_block<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    fp8::<R>(call, plan, size(call, "group_size"), 0.0)
}

/// x over a scale that is given, as the kernel divides.
fn over_scale<R: Real>(plan: &Plan, x: R, scale: R) -> R {
    let scale = scale * R::new(plan.mutation.constant());
    if plan.mutation.named("multiplied by the scale") { x * scale } else { x.over(scale, plan.style.division) }
}

/// Where the scale of a row lies: its own place, or its neighbour's.
fn place(plan: &Plan, row: usize, rows: usize) -> usize {
    if plan.mutation.named("neighbour's scale") { (row + 1) % rows.max(1) } else { row }
}

fn fp8_static<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (numbers, scale): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "scale")?);
    let scale = if plan.mutation.is(Mutation::FlipSign) { -scale[0] } else { scale[0] };
    let narrow: Vec<R> = numbers.iter().map(|x| clamped(plan, over_scale(plan, *x, scale))).collect();
    write(plan, &mut call.outputs[0], &narrow)
}

fn int8_per_tensor<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let numbers: Vec<R> = input(call, "input")?;
    let scale = R::new(call.parameters.float("scale").unwrap_or(1.0));
    let zero = call.parameters.int("zero_point").unwrap_or(0) as f64;
    let convert = |x: &R| code(plan, over_scale(plan, *x, scale), zero, -128.0, 127.0);
    let codes: Vec<f64> = numbers.iter().map(convert).collect();
    write(plan, &mut call.outputs[0], &codes)
}

fn int8_per_channel<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (numbers, scales): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "scale")?);
    let zeros: Option<Vec<f64>> = elements(call, "zero_point")?;
    let mut codes = Vec::with_capacity(numbers.len());
    for (row, channel) in numbers.chunks(size(call, "K").max(1)).enumerate() {
        let zero = zeros.as_ref().map_or(0.0, |zeros| zeros[row]);
        let scale = scales[place(plan, row, scales.len())];
        codes.extend(channel.iter().map(|x| code(plan, over_scale(plan, *x, scale), zero, -128.0, 127.0)));
    }
    write(plan, &mut call.outputs[0], &codes)
}

/// (code − zero)·scale, or code·scale − zero·scale.
fn restored<R: Real>(plan: &Plan, code: R, zero: R, scale: R) -> R {
    let scale = scale * R::new(plan.mutation.constant());
    if plan.mutation.named("divided by the scale") {
        return (code - zero) / scale;
    }
    if plan.mutation.named("zero point added") {
        return (code + zero) * scale;
    }
    if plan.style.division == Division::Reciprocal && zero.value() != 0.0 {
        return code * scale - zero * scale;
    }
    (code - zero) * scale
}

/// Rows of codes with a scale and a zero point each.
fn restore_rows<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    (codes, width): (&[R], usize),
    scales: &[R],
    zero: impl Fn(usize) -> R,
) -> Result<(), RunnerError> {
    let mut values = Vec::with_capacity(codes.len());
    for (row, codes) in codes.chunks(width.max(1)).enumerate() {
        let scale = scales[place(plan, row, scales.len())];
        values.extend(codes.iter().map(|code| restored(plan, *code, zero(row), scale)));
    }
    let whole = values.len() / 32 * 32;
    if plan.mutation.named("tail left at zero") && whole > 0 {
        values[whole..].fill(R::zero());
    }
    write(plan, &mut call.outputs[0], &values)
}

/// int8 codes as they are, or misread.
fn codes<R: Real>(call: &Invocation<'_>, plan: &Plan) -> Result<Vec<R>, RunnerError> {
    let codes: Vec<R> = input(call, "q")?;
    let unsigned = plan.mutation.named("code read as unsigned");
    let read = |code: R| if unsigned && code < R::zero() { code + R::new(256.0) } else { code };
    Ok(codes.into_iter().map(read).collect())
}

fn from_int8_rows<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (codes, scales): (Vec<R>, Vec<R>) = (codes(call, plan)?, input(call, "scale")?);
    let width = size(call, "H");
    restore_rows(call, plan, (&codes, width), &scales, |_| R::zero())
}

fn from_int8_channels<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (codes, scales): (Vec<R>, Vec<R>) = (codes(call, plan)?, input(call, "scale")?);
    let zeros: Option<Vec<R>> = elements(call, "zero_point")?;
    let width = size(call, "K");
    restore_rows(call, plan, (&codes, width), &scales, |row| zeros.as_ref().map_or(R::zero(), |zeros| zeros[row]))
}

fn from_int8_tensor<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let codes: Vec<R> = codes(call, plan)?;
    let scale = R::new(call.parameters.float("scale").unwrap_or(1.0));
    let zero = R::new(call.parameters.int("zero_point").unwrap_or(0) as f64);
    let width = codes.len();
    restore_rows(call, plan, (&codes, width), &[scale], |_| zero)
}

fn from_int4_groups<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (packed, scales): (Vec<f64>, Vec<R>) = (input(call, "packed")?, input(call, "scale")?);
    let zeros: Option<Vec<R>> = elements(call, "zeros")?;
    let swapped = plan.mutation.named("upper nibble first");
    let mut codes = Vec::with_capacity(2 * packed.len());
    for byte in packed {
        let (lower, upper) = (byte % 16.0, (byte / 16.0).floor());
        let (first, second) = if swapped { (upper, lower) } else { (lower, upper) };
        codes.extend([R::new(first), R::new(second)]);
    }
    let missing = plan.mutation.named("offset missing");
    let zero = |group: usize| {
        let zero = zeros.as_ref().map_or(R::new(8.0), |zeros| zeros[group]);
        if missing { R::zero() } else { zero }
    };
    let width = size(call, "group_size");
    restore_rows(call, plan, (&codes, width), &scales, zero)
}

fn from_fp8<R: Real>(call: &mut Invocation<'_>, plan: &Plan, width: usize) -> Result<(), RunnerError> {
    let (numbers, scales): (Vec<R>, Vec<R>) = (input(call, "q")?, input(call, "scale")?);
    restore_rows(call, plan, (&numbers, width), &scales, |_| R::zero())
}

fn from_fp8_rows<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let width = size(call, "H");
    from_fp8::<R>(call, plan, width)
}

fn from_fp8_blocks<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let width = size(call, "group_size");
    from_fp8::<R>(call, plan, width)
}
