//! How the 64-bit address space is laid out.
//!
//! Every allocation has a slice of 2^40 bytes to itself and lies in its middle: an address says by its upper bits which
//! allocation it belongs to or has missed, and by how far, and a 32-bit offset that overflows never lands in another.

use gpuemu_ptx::syntax::StateSpace;

/// Bits of an address within a slice.
const SLICE_BITS: u32 = 40;

/// The first slice that holds an allocation; those below are windows, and null.
const FIRST_ALLOCATION: u64 = 8;

/// The largest allocation: it leaves a gap on both sides of its slice.
pub const MOST_BYTES: u64 = 1 << (SLICE_BITS - 2);

/// A window of the generic address space, through which memory of a block or a thread is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Shared memory of the block.
    Shared,
    /// Local memory of the thread.
    Local,
    /// Parameters of the entry.
    Parameter,
}

impl Window {
    /// The address of its first byte.
    pub const fn base(self) -> u64 {
        let slice = match self {
            Window::Shared => 1,
            Window::Local => 2,
            Window::Parameter => 3,
        };
        slice << SLICE_BITS
    }
}

/// The state space that an instruction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// None: the address says.
    Generic,
    /// Global memory; constants too, which lie there and may only be read.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Local memory of the thread.
    Local,
    /// Parameters of the entry.
    Parameter,
}

impl Space {
    /// The space of a state space; none for those that are no memory.
    pub const fn of(space: StateSpace) -> Option<Self> {
        match space {
            StateSpace::Global | StateSpace::Constant => Some(Space::Global),
            StateSpace::Shared => Some(Space::Shared),
            StateSpace::Local => Some(Space::Local),
            StateSpace::Parameter => Some(Space::Parameter),
            StateSpace::Register | StateSpace::Texture => None,
        }
    }

    /// What has to be added to an address of this space to make it generic.
    pub const fn window_base(self) -> u64 {
        match self {
            Space::Generic | Space::Global => 0,
            Space::Shared => Window::Shared.base(),
            Space::Local => Window::Local.base(),
            Space::Parameter => Window::Parameter.base(),
        }
    }

    /// The word for it in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Parameter => "parameter",
        }
    }
}

/// The space that a generic address lies in, and the address there.
#[inline(always)]
pub const fn resolve(address: u64) -> (Space, u64) {
    let within = address & ((1 << SLICE_BITS) - 1);
    match address >> SLICE_BITS {
        1 => (Space::Shared, within),
        2 => (Space::Local, within),
        3 => (Space::Parameter, within),
        _ => (Space::Global, address),
    }
}

/// The number of the allocation in whose slice an address lies.
#[inline(always)]
pub const fn allocation_of(address: u64) -> Option<usize> {
    match (address >> SLICE_BITS).checked_sub(FIRST_ALLOCATION) {
        Some(number) => Some(number as usize),
        None => None,
    }
}

/// The address of an allocation's first byte, for a buffer that starts `offset` bytes after a multiple of 512.
pub const fn base_of(allocation: usize, offset: u64) -> u64 {
    ((FIRST_ALLOCATION + allocation as u64) << SLICE_BITS) + (1 << (SLICE_BITS - 1)) + offset % 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_knows_its_allocation_on_both_sides() {
        let base = base_of(3, 4);
        assert_eq!(base % 512, 4);
        assert_eq!(allocation_of(base), Some(3));
        assert_eq!(allocation_of(base - (1 << 33)), Some(3));
        assert_eq!(allocation_of(base + MOST_BYTES), Some(3));
        assert_eq!(allocation_of(0), None);
        assert_eq!(resolve(Window::Shared.base() + 12), (Space::Shared, 12));
        assert_eq!(resolve(base), (Space::Global, base));
    }
}
