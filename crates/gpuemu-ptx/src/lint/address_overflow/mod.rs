//! Offsets of global accesses that are computed in 32 bits and can wrap.
//!
//! Each address is followed back to where a 32-bit value becomes 64 bits wide. What was multiplied before that can
//! have wrapped already; what is multiplied after it cannot.

mod message;
mod products;
mod trace;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use gpuemu_model::artifact::{Origin, Severity};

use self::message::Wrap;
use self::products::{Product, Products};
use super::function::Analysed;
use super::report::{Place, Report};
use super::rule::ADDRESS_OVERFLOW;

/// Where the code of a product came from, as well as that is known.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whence {
    /// A line of the source.
    Line(Origin),
    /// A `.loc` that names no line; its place in memory tells it from others.
    Directive(usize),
    Step(usize),
}

/// Reports products that can wrap, once for each line of the source where that is known.
pub(super) fn check<'a>(function: &Analysed<'_, 'a>, report: &mut Report<'_, 'a>) {
    let roots = trace::roots(function);
    if roots.is_empty() {
        return;
    }
    let mut products = Products::of(function);
    // The same product may reach several accesses: the gravest is told, of those the one that goes wrong first.
    let mut wraps: BTreeMap<usize, (Product, Wrap)> = BTreeMap::new();
    for root in roots {
        let Some(product) = products.worst(&root) else { continue };
        let wrap = Wrap::of(function, &root);
        let known = wraps.entry(product.step).or_insert((product, wrap));
        let rank = |(product, wrap): &(Product, Wrap)| (Reverse(product.severity), wrap.bytes.unwrap_or(u64::MAX));
        if rank(&(product, wrap)) < rank(known) {
            *known = (product, wrap);
        }
    }
    if products.exhausted() {
        let name = function.code.function.name;
        report.not_checked(ADDRESS_OVERFLOW.name, format!("'{name}' is too large for all its offsets to be followed"));
    }
    let mut places: BTreeMap<(Whence, Severity), usize> = BTreeMap::new();
    let mut found: Vec<(Product, Wrap, usize)> = Vec::new();
    for (product, wrap) in wraps.into_values() {
        let location = function.code.steps.get(product.step).and_then(|step| step.location);
        let whence = match (report.origin(location), location) {
            (Some(origin), _) => Whence::Line(origin),
            (None, Some(location)) => Whence::Directive(std::ptr::from_ref(location).addr()),
            (None, None) => Whence::Step(product.step),
        };
        match places.entry((whence, product.severity)) {
            Entry::Vacant(place) => {
                place.insert(found.len());
                found.push((product, wrap, 0));
            }
            Entry::Occupied(place) => {
                if let Some((_, _, others)) = found.get_mut(*place.get()) {
                    *others += 1;
                }
            }
        }
    }
    for (product, wrap, others) in found {
        if let Some(step) = function.code.steps.get(product.step) {
            let message = message::of(function, &product, &wrap, others);
            report.graded(&ADDRESS_OVERFLOW, product.severity, Place::of(step), message);
        }
    }
}
