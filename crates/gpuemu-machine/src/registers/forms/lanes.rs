//! One function of one lane, done for 32.
//!
//! A [`Function`] is a type, so that its loop is compiled for each instruction set and vectorised.

use crate::registers::file::{LANES, RegisterFile, Slot};
use crate::registers::pure::Pure;
use crate::registers::simd::Operation;

/// A value that a lane of a register holds.
pub trait Cell: Copy {
    /// The lanes of a register, as they are read.
    type View<'a>: Copy;
    /// The lanes of a result, before they are written.
    type Store;

    /// The lanes of a register.
    fn view(file: &RegisterFile, slot: Slot) -> Self::View<'_>;
    fn at(view: Self::View<'_>, lane: usize) -> Self;
    fn store() -> Self::Store;
    /// Sets one of them; each is set once, in order.
    fn put(self, store: &mut Self::Store, lane: usize);
    /// Writes those in the mask.
    fn write(store: &Self::Store, file: &mut RegisterFile, slot: Slot, mask: u32);
}

macro_rules! cell {
    ($($cell:ty as $bits:ty: $read:ident, $write:ident;)+) => {
        $(impl Cell for $cell {
            type View<'a> = &'a [$cell; LANES];
            type Store = [$cell; LANES];

            #[inline(always)]
            fn view(file: &RegisterFile, slot: Slot) -> &[$cell; LANES] {
                bytemuck::cast_ref::<[$bits; LANES], [$cell; LANES]>(file.$read(slot))
            }

            #[inline(always)]
            fn at(view: &[$cell; LANES], lane: usize) -> $cell {
                view[lane]
            }

            #[inline(always)]
            fn store() -> [$cell; LANES] {
                [<$cell>::default(); LANES]
            }

            #[inline(always)]
            fn put(self, store: &mut [$cell; LANES], lane: usize) {
                store[lane] = self;
            }

            #[inline(always)]
            fn write(store: &[$cell; LANES], file: &mut RegisterFile, slot: Slot, mask: u32) {
                file.$write(slot, bytemuck::cast_ref::<[$cell; LANES], [$bits; LANES]>(store), mask);
            }
        })+
    };
}

cell! {
    u16 as u16: b16, set_b16;
    i16 as u16: b16, set_b16;
    u32 as u32: b32, set_b32;
    i32 as u32: b32, set_b32;
    f32 as u32: b32, set_b32;
    u64 as u64: b64, set_b64;
    i64 as u64: b64, set_b64;
    f64 as u64: b64, set_b64;
}

impl Cell for bool {
    type View<'a> = u32;
    type Store = [bool; LANES];

    #[inline(always)]
    fn view(file: &RegisterFile, slot: Slot) -> u32 {
        file.predicate(slot)
    }

    #[inline(always)]
    fn at(view: u32, lane: usize) -> bool {
        view >> lane & 1 == 1
    }

    #[inline(always)]
    fn store() -> [bool; LANES] {
        [false; LANES]
    }

    #[inline(always)]
    fn put(self, store: &mut [bool; LANES], lane: usize) {
        store[lane] = self;
    }

    #[inline(always)]
    fn write(store: &[bool; LANES], file: &mut RegisterFile, slot: Slot, mask: u32) {
        let mut bits = 0;
        for (lane, holds) in store.iter().enumerate() {
            bits |= u32::from(*holds) << lane;
        }
        file.set_predicate(slot, bits, mask);
    }
}

/// The values that a function is given, from slots one after the other.
pub trait Sources: Copy {
    type Views<'a>: Copy;
    /// The registers from a slot on.
    fn views<'a>(file: &'a RegisterFile, pure: &Pure, first: usize) -> Self::Views<'a>;
    /// One lane of each.
    fn at(views: Self::Views<'_>, lane: usize) -> Self;
}

macro_rules! sources {
    ($($cell:ident $place:tt),+) => {
        impl<$($cell: Cell),+> Sources for ($($cell,)+) {
            type Views<'a> = ($($cell::View<'a>,)+);

            #[inline(always)]
            fn views<'a>(file: &'a RegisterFile, pure: &Pure, first: usize) -> Self::Views<'a> {
                ($($cell::view(file, pure.slots[first + $place]),)+)
            }

            #[inline(always)]
            fn at(views: Self::Views<'_>, lane: usize) -> Self {
                ($($cell::at(views.$place, lane),)+)
            }
        }
    };
}

sources!(A 0);
sources!(A 0, B 1);
sources!(A 0, B 1, C 2);
sources!(A 0, B 1, C 2, D 3);
sources!(A 0, B 1, C 2, D 3, E 4);

/// The values that a function gives, to slots one after the other.
pub trait Results: Copy {
    const COUNT: usize;
    type Stores;
    fn stores() -> Self::Stores;
    /// Sets one lane of each.
    fn put_all(self, stores: &mut Self::Stores, lane: usize);
    /// Writes those in the mask.
    fn write_all(stores: &Self::Stores, file: &mut RegisterFile, pure: &Pure, mask: u32);
}

macro_rules! results {
    ($count:literal: $($cell:ident $place:tt),+) => {
        impl<$($cell: Cell),+> Results for ($($cell,)+) {
            const COUNT: usize = $count;
            type Stores = ($($cell::Store,)+);

            #[inline(always)]
            fn stores() -> Self::Stores {
                ($($cell::store(),)+)
            }

            #[inline(always)]
            fn put_all(self, stores: &mut Self::Stores, lane: usize) {
                $(self.$place.put(&mut stores.$place, lane);)+
            }

            #[inline(always)]
            fn write_all(stores: &Self::Stores, file: &mut RegisterFile, pure: &Pure, mask: u32) {
                $($cell::write(&stores.$place, file, pure.slots[$place], mask);)+
            }
        }
    };
}

impl<C: Cell> Results for C {
    const COUNT: usize = 1;
    type Stores = C::Store;

    #[inline(always)]
    fn stores() -> C::Store {
        C::store()
    }

    #[inline(always)]
    fn put_all(self, stores: &mut C::Store, lane: usize) {
        self.put(stores, lane);
    }

    #[inline(always)]
    fn write_all(stores: &C::Store, file: &mut RegisterFile, pure: &Pure, mask: u32) {
        C::write(stores, file, pure.slots[0], mask);
    }
}

results!(2: A 0, B 1);
results!(4: A 0, B 1, C 2, D 3);

/// A function of one lane.
pub trait Function {
    /// What it is given.
    type Sources: Sources;
    type Results: Results;
    /// Does it. Must be `#[inline(always)]`.
    fn of(sources: Self::Sources, extra: u32) -> Self::Results;
}

/// A function, done for every lane: results in the first slots, sources in those after them.
pub struct Each<F>(F);

impl<F: Function> Operation for Each<F> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let mut stores = F::Results::stores();
        let views = F::Sources::views(file, pure, F::Results::COUNT);
        for lane in 0..LANES {
            F::of(F::Sources::at(views, lane), pure.extra).put_all(&mut stores, lane);
        }
        F::Results::write_all(&stores, file, pure, mask);
    }
}

/// A function whose last source and last result are the carry, in the slot after the operands.
pub struct Carried<F>(F);

impl<F: CarryFunction> Operation for Carried<F> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let slot = pure.slots[1 + F::SOURCES];
        let carry = file.predicate(slot);
        let mut store = F::Cell::store();
        let mut carries = [false; LANES];
        let views = F::Sources::views(file, pure, 1);
        for (lane, carries) in carries.iter_mut().enumerate() {
            let value;
            (value, *carries) = F::of(F::Sources::at(views, lane), carry >> lane & 1 == 1);
            value.put(&mut store, lane);
        }
        F::Cell::write(&store, file, pure.slots[0], mask);
        if F::SETS_CARRY {
            bool::write(&carries, file, slot, mask);
        }
    }
}

/// A function of one lane with a carry.
pub trait CarryFunction {
    /// What it is given beside the carry.
    type Sources: Sources;
    /// How many that are.
    const SOURCES: usize;
    type Cell: Cell;
    /// Whether the carry that it gives is kept (`.cc`).
    const SETS_CARRY: bool;
    /// Does it. Must be `#[inline(always)]`.
    fn of(sources: Self::Sources, carry: bool) -> (Self::Cell, bool);
}

/// Functions, one a line: `Name(a: u32, b: u32) -> u32 = body;`, with `[extra]` after the name where that is needed.
macro_rules! functions {
    ($($name:ident $([$extra:ident])? ($($source:ident : $cell:ty),+) -> $result:ty = $body:expr;)+) => {
        $(pub(super) struct $name;

        impl $crate::registers::forms::lanes::Function for $name {
            type Sources = ($($cell,)+);
            type Results = $result;

            #[inline(always)]
            fn of(($($source,)+): Self::Sources, _extra: u32) -> $result {
                $(let $extra = _extra;)?
                $body
            }
        })+
    };
}

pub(super) use functions;
