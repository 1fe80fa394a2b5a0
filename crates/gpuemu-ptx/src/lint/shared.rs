//! The limit of shared memory.

use gpuemu_model::artifact::EntryMetrics;

use super::report::{Place, Report};
use super::rule::SHARED_MEMORY_LIMIT;
use crate::tools::occupancy::{LARGEST_STATIC_SHARED_BYTES, largest_shared_bytes};

/// Checks the static shared memory of an entry.
pub(super) fn check(entry: &EntryMetrics, target: &str, place: Place<'_, '_>, report: &mut Report<'_, '_>) {
    let bytes = entry.shared.bytes;
    if bytes <= LARGEST_STATIC_SHARED_BYTES {
        return;
    }
    let message = match largest_shared_bytes(target).filter(|largest| bytes > *largest) {
        Some(largest) => {
            format!("{bytes} bytes of static shared memory, a block of {target} has at most {largest} in all")
        }
        None => format!(
            "{bytes} bytes of static shared memory, at most {LARGEST_STATIC_SHARED_BYTES} may be static; \
             declare it as dynamic and ask for it at launch"
        ),
    };
    report.found(&SHARED_MEMORY_LIMIT, place, message);
}
