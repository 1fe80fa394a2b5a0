//! Neighbouring values that are moved one by one.

use std::collections::{BTreeMap, HashMap};

use super::access::{Direction, GlobalAccess, global_access};
use super::function::Analysed;
use super::report::{Place, Report};
use super::rule::SCALAR_ACCESS;
use crate::code::Register;
use crate::flow::Version;
use crate::syntax::{AddressBase, Instruction, Operand, ScalarType};

/// The most bytes that one instruction moves for a thread, and the next smaller width that is worth it.
const WIDTHS: [u64; 2] = [16, 8];

/// Accesses that could be one: same instruction, same address register with the same value, same guard, and no
/// access between that could be to the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Group<'a> {
    opcode: &'a str,
    base: (Version, u32),
    guard: Option<(bool, Register, u32)>,
    epoch: u32,
}

/// A version of a register and how often it was written so far, where that can be more than once.
struct Base<'a> {
    version: Version,
    writes: u32,
    name: &'a str,
    offset: i64,
}

/// How many sums with constants an address is followed back through.
const MOST_SUMS: usize = 16;

struct Members<'a> {
    name: &'a str,
    first: usize,
    direction: Direction,
    bytes: u64,
    offsets: BTreeMap<i64, usize>,
}

/// Reports them, once for each address register and block of code.
pub(super) fn check<'a>(function: &Analysed<'_, 'a>, report: &mut Report<'_, 'a>) {
    let mut writes = vec![0u32; function.code.registers.len()];
    for block in 0..function.graph.len() {
        let mut groups = in_block(function, block, &mut writes);
        groups.sort_by_key(|(_, members)| members.first);
        for (group, members) in groups {
            report_group(function, group, &members, report);
        }
    }
}

fn in_block<'a>(function: &Analysed<'_, 'a>, block: usize, writes: &mut [u32]) -> Vec<(Group<'a>, Members<'a>)> {
    let code = &function.code;
    let mut groups: HashMap<Group<'a>, Members<'a>> = HashMap::new();
    let (mut loads, mut stores) = (0u32, 0u32);
    for number in function.graph.steps(block) {
        let Some(step) = code.steps.get(number) else { continue };
        let instruction = step.instruction;
        match order_of(instruction) {
            Order::Load => loads += 1,
            Order::Store => stores += 1,
            Order::Both => (loads, stores) = (loads + 1, stores + 1),
            Order::None => {}
        }
        let written = |register: Register| writes.get(register.index()).copied().unwrap_or_default();
        let access = global_access(instruction)
            .filter(|access| access.direction != Direction::Other && !access.generic && is_plain(instruction));
        if let Some(access) = access
            && let Some(base) = base_of(function, number, &access, written)
            && let bytes = access.element_bytes * access.elements
            && bytes < WIDTHS[0]
        {
            let guard = instruction.guard.and_then(|guard| Some((guard, code.register(number, guard.predicate)?)));
            let guard = guard.map(|(guard, register)| (guard.negated, register, written(register)));
            // Loads may not move over stores, nor stores over loads.
            let epoch = if access.direction == Direction::Load { stores } else { loads };
            let group = Group { opcode: instruction.opcode, base: (base.version, base.writes), guard, epoch };
            let direction = access.direction;
            let fresh = || Members { name: base.name, first: number, direction, bytes, offsets: BTreeMap::new() };
            groups.entry(group).or_insert_with(fresh).offsets.entry(base.offset).or_insert(number);
        }
        for written in code.writes(number) {
            if let Some(count) = writes.get_mut(written.index()) {
                *count += 1;
            }
        }
    }
    groups.into_iter().collect()
}

/// What an address starts from. Compilers add constants apart: sums in the same block are followed back.
fn base_of<'a>(
    function: &Analysed<'_, 'a>,
    step: usize,
    access: &GlobalAccess<'_, 'a>,
    written: impl Fn(Register) -> u32,
) -> Option<Base<'a>> {
    let (code, uses) = (&function.code, &function.uses);
    let register = access.base(code, step)?;
    let AddressBase::Name(name) = access.address.base else { return None };
    let version = uses.read(code, step, register)?;
    let mut base = Base { version, writes: 0, name, offset: access.address.offset };
    if uses.definitions(version).len() > 1 {
        base.writes = written(register);
        return Some(base);
    }
    for _ in 0..MOST_SUMS {
        let [definition] = uses.definitions(base.version) else { break };
        let definition = *definition as usize;
        let Some(instruction) = code.steps.get(definition).map(|step| step.instruction) else { break };
        let wide = instruction.types().next().and_then(ScalarType::bytes) == Some(8);
        let here = function.graph.block_of(definition) == function.graph.block_of(step);
        if instruction.base() != "add" || !wide || !here || instruction.guard.is_some() {
            break;
        }
        let [_, Operand::Name(name), added] = instruction.operands.as_slice() else { break };
        let (Some(version), Some(added)) = (function.version(definition, 1), function.constant(definition, added))
        else {
            break;
        };
        let Some(offset) = base.offset.checked_add(added).filter(|_| uses.definitions(version).len() <= 1) else {
            break;
        };
        base = Base { version, writes: 0, name, offset };
    }
    Some(base)
}

enum Order {
    Load,
    Store,
    Both,
    None,
}

fn order_of(instruction: &Instruction<'_>) -> Order {
    // What is told to be elsewhere cannot be the same place.
    let elsewhere = ["param", "shared", "local", "const"].iter().any(|space| instruction.has(space));
    match instruction.base() {
        "ld" | "ldu" | "st" if elsewhere => Order::None,
        "ld" | "ldu" => Order::Load,
        "st" => Order::Store,
        "atom" | "red" | "cp" | "bar" | "barrier" | "membar" | "fence" | "call" | "mbarrier" | "wmma" => Order::Both,
        _ => Order::None,
    }
}

/// Whether nothing but width keeps an access from being part of a vector.
fn is_plain(instruction: &Instruction<'_>) -> bool {
    !["volatile", "relaxed", "acquire", "release", "mmio"].iter().any(|word| instruction.has(word))
}

fn report_group<'a>(function: &Analysed<'_, 'a>, group: Group<'a>, members: &Members<'a>, report: &mut Report<'_, 'a>) {
    let (base, _) = group.base;
    let aligned = 1u64 << function.values.of_version(base).alignment;
    for width in WIDTHS {
        if width <= members.bytes || width > aligned {
            continue;
        }
        let whole = whole_vectors(members, width);
        if whole.is_empty() {
            continue;
        }
        let word = if members.direction == Direction::Load { "loads" } else { "stores" };
        let parts = width / members.bytes;
        let offsets: Vec<i64> = whole
            .iter()
            .flat_map(|start| (0..parts as i64).map(move |part| start + part * members.bytes as i64))
            .collect();
        let could = if whole.len() == 1 { "one".to_string() } else { whole.len().to_string() };
        let message = format!(
            "{} {word} of {} bytes at offsets {} from {} could be {could} of {width} bytes if the address is \
             {width}-byte aligned",
            offsets.len(),
            members.bytes,
            listed(&offsets),
            members.name,
        );
        let first = offsets.iter().filter_map(|offset| members.offsets.get(offset)).min();
        if let Some(step) = first.and_then(|first| function.code.steps.get(*first)) {
            report.found(&SCALAR_ACCESS, Place::of(step), message);
        }
        return;
    }
}

/// Offsets at which a whole vector of a width begins.
fn whole_vectors(members: &Members<'_>, width: u64) -> Vec<i64> {
    let parts = (width / members.bytes) as i64;
    let bytes = members.bytes as i64;
    let starts = members.offsets.keys().filter(|offset| offset.rem_euclid(width as i64) == 0);
    let whole = |start: &&i64| {
        (1..parts).all(|part| start.checked_add(part * bytes).is_some_and(|next| members.offsets.contains_key(&next)))
    };
    starts.filter(whole).copied().collect()
}

/// The first eight, and that there are more.
fn listed(offsets: &[i64]) -> String {
    let shown: Vec<String> = offsets.iter().take(8).map(i64::to_string).collect();
    let more = if offsets.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}
