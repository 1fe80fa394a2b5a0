//! What is said of an offset that wraps, with the size at which it does.

use gpuemu_model::artifact::Severity;

use super::products::{Kind, Product};
use super::trace::Root;
use crate::flow::Version;
use crate::lint::function::Analysed;
use crate::syntax::{AddressBase, Operand};

/// Elements of a row in the example.
const EXAMPLE_STRIDE: u64 = 4096;

/// Where an offset wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrap {
    /// The first number that does not fit.
    limit: u64,
    /// Bytes into a buffer; nothing where a register decides what the number is multiplied by.
    pub bytes: Option<u64>,
    element_bytes: u64,
}

impl Wrap {
    pub fn of(function: &Analysed<'_, '_>, root: &Root) -> Self {
        // Accesses may move several elements at once, so what offsets are scaled by says how large one is.
        let element_bytes = match root.scale {
            Some(1) => scaled_before(function, root).unwrap_or(1),
            Some(scale @ (2 | 4 | 8 | 16)) => scale,
            _ => root.element_bytes.max(1),
        };
        let bytes = root.scale.and_then(|scale| root.limit().checked_mul(scale));
        Self { limit: root.limit(), bytes, element_bytes }
    }
}

/// How many sums are looked through for the bytes that an offset was scaled by.
const MOST_SUMS: usize = 8;

/// The bytes of an element that an offset was scaled by before it was widened.
fn scaled_before(function: &Analysed<'_, '_>, root: &Root) -> Option<u64> {
    let mut version = root.version;
    for _ in 0..MOST_SUMS {
        let [definition] = function.uses.definitions(version) else { return None };
        let step = *definition as usize;
        let instruction = function.code.steps.get(step)?.instruction;
        let factor = function.value(step, 2).constant.and_then(|factor| u64::try_from(factor).ok());
        let factor = match instruction.base() {
            "shl" => factor.filter(|by| *by <= 4).map(|by| 1 << by),
            "mul" => factor,
            "mov" | "add" | "or" => {
                version = function.version(step, 1)?;
                continue;
            }
            _ => None,
        };
        return factor.filter(|factor| matches!(factor, 2 | 4 | 8 | 16));
    }
    None
}

/// The message of a finding. `others` more of the same line are told by number.
pub(super) fn of(function: &Analysed<'_, '_>, product: &Product, wrap: &Wrap, others: usize) -> String {
    let (expression, mentioned) = expression(function, product);
    let limit = grouped(wrap.limit);
    let mut text = match product.kind {
        Kind::Loop => format!("{expression}, in 32 bits, and wraps at {limit}"),
        _ => format!("the offset {expression} is computed in 32 bits and wraps at {limit}"),
    };
    if let Some(bytes) = wrap.bytes {
        let elements = bytes / wrap.element_bytes;
        let (word, with) = match wrap.element_bytes {
            1 => ("byte", String::new()),
            bytes => ("element", format!("with elements of {bytes} bytes ")),
        };
        text +=
            &format!(": {with}the access is wrong from {word} {} on, {} into a buffer", grouped(elements), size(bytes));
        if product.severity != Severity::Note {
            let (stride, row) = (grouped(EXAMPLE_STRIDE), grouped(elements / EXAMPLE_STRIDE));
            text += &format!("; with rows of {stride} {word}s that is row {row}");
        }
    }
    text += &bounded(function, product, wrap.limit);
    text += ". Compute it in 64 bits";
    let named: Vec<String> =
        mentioned.into_iter().filter_map(|(name, version)| named(function, name, version)).collect();
    if !named.is_empty() {
        text += &format!(" ({})", named.join(", "));
    }
    match others {
        0 => text,
        1 => text + ". Another offset there does so too",
        _ => text + &format!(". {others} other offsets there do so too"),
    }
}

/// The product in words, and the registers in it.
fn expression<'f>(function: &'f Analysed<'_, '_>, product: &Product) -> (String, Vec<(&'f str, Version)>) {
    let Some(step) = function.code.steps.get(product.step) else { return (String::new(), Vec::new()) };
    let operands = &step.instruction.operands;
    let shown = |place: usize| operands.get(place).map_or_else(String::new, show);
    let mut versions: Vec<(&str, Version)> = Vec::new();
    for place in 1..operands.len().min(4) {
        if let (Some(Operand::Name(name)), Some(version)) = (operands.get(place), function.version(product.step, place))
            && !versions.iter().any(|(_, known)| *known == version)
        {
            versions.push((*name, version));
        }
    }
    let text = match step.instruction.base() {
        "mad" => format!("`{} * {} + {}`", shown(1), shown(2), shown(3)),
        "mul" => format!("`{} * {}`", shown(1), shown(2)),
        "shl" => format!("`{} << {}`", shown(1), shown(2)),
        "sub" => format!("the offset {} grows by `{} - {}` in a loop", shown(0), shown(1), shown(2)),
        _ => format!("the offset {} grows as `{} + {}` in a loop", shown(0), shown(1), shown(2)),
    };
    (text, versions)
}

fn show(operand: &Operand<'_>) -> String {
    match operand {
        Operand::Name(name) => (*name).to_string(),
        Operand::Component(name, element) => format!("{name}.{element}"),
        Operand::Integer(number) if number.unsigned => number.bits.to_string(),
        Operand::Integer(number) => number.value().to_string(),
        _ => "…".to_string(),
    }
}

/// A parameter or special register that a register holds and nothing else.
fn named(function: &Analysed<'_, '_>, name: &str, version: Version) -> Option<String> {
    let [definition] = function.uses.definitions(version) else { return None };
    let instruction = function.code.steps.get(*definition as usize)?.instruction;
    let held = match (instruction.base(), instruction.operands.get(1)?) {
        ("ld", Operand::Address(address)) if instruction.has("param") => match address.base {
            AddressBase::Name(parameter) => parameter.to_string(),
            AddressBase::Absolute(_) => return None,
        },
        ("mov", operand @ Operand::Component(..)) => show(operand),
        _ => return None,
    };
    Some(format!("{name} is {held}"))
}

/// A bound that is larger tells nothing.
const MOST_TOLD: u64 = 65_535;

/// Where one factor has a bound, how large the other would have to be.
fn bounded(function: &Analysed<'_, '_>, product: &Product, limit: u64) -> String {
    let base = function.code.steps.get(product.step).map_or("", |step| step.instruction.base());
    if product.kind != Kind::Variable || !matches!(base, "mul" | "mad") {
        return String::new();
    }
    let values = [(1, 2), (2, 1)].map(|(place, other)| (function.value(product.step, place), place, other));
    let Some((value, place, other)) = values.into_iter().min_by_key(|(value, ..)| value.most) else {
        return String::new();
    };
    if value.most == 0 || value.most > MOST_TOLD {
        return String::new();
    }
    let shown = |place: usize| {
        let operands = function.code.steps.get(product.step).map(|step| &step.instruction.operands);
        operands.and_then(|operands| operands.get(place)).map_or_else(String::new, show)
    };
    let needed = limit.div_ceil(value.most.saturating_mul(product.factor));
    format!(
        "; {} is at most {}, so {} has to reach {}",
        shown(place),
        grouped(value.most),
        shown(other),
        grouped(needed)
    )
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit that divides them.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", grouped(bytes >> 30)),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", grouped(bytes >> 20)),
        bytes => format!("{} bytes", grouped(bytes)),
    }
}
