//! How a thread's processor rounds and what it makes of subnormal numbers.
//!
//! Any code of the process may change that for its thread, and threads inherit it from the one that starts them: a
//! library that was compiled for fast mathematics does when it is loaded, a framework by a switch, a kernel by mistake.
//! What judges a kernel must not compute in the kernel's way.

use std::cell::Cell;
use std::marker::PhantomData;

/// The control bits of a thread's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatEnvironment(u64);

/// The standard state, for as long as it lives; then the thread has again what it had before.
#[derive(Debug)]
pub struct Standard {
    before: FloatEnvironment,
    outermost: bool,
    /// The state is that of one thread.
    _here: PhantomData<*const ()>,
}

thread_local! {
    /// What the thread had when it first entered the standard state.
    static OUTSIDE: Cell<Option<FloatEnvironment>> = const { Cell::new(None) };
}

impl FloatEnvironment {
    /// Numbers are rounded to nearest, subnormal ones are numbers, and no operation traps.
    pub const STANDARD: Self = Self(processor::STANDARD);

    /// That of this thread.
    pub fn current() -> Self {
        Self(processor::read() & processor::CONTROL)
    }

    /// Gives it to this thread.
    pub fn set(self) {
        if Self::current() != self {
            processor::write((processor::read() & !processor::CONTROL) | self.0);
        }
    }

    /// Enters the standard state.
    #[must_use = "the state lasts as long as the value"]
    pub fn enter_standard() -> Standard {
        let before = Self::current();
        let outermost = OUTSIDE.get().is_none();
        if outermost {
            OUTSIDE.set(Some(before));
        }
        Self::STANDARD.set();
        Standard { before, outermost, _here: PhantomData }
    }

    /// What the thread had before it entered the standard state; that state, if it has not.
    pub fn outside() -> Self {
        OUTSIDE.get().unwrap_or_else(Self::current)
    }

    /// How it differs from the standard state, in words.
    pub fn differences(self) -> Vec<&'static str> {
        processor::NAMED.iter().filter(|(mask, bits, _)| self.0 & mask == *bits).map(|(_, _, words)| *words).collect()
    }
}

impl Drop for Standard {
    fn drop(&mut self) {
        if self.outermost {
            OUTSIDE.set(None);
        }
        self.before.set();
    }
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::asm;

    /// Subnormal inputs are zero, exceptions do not trap, the direction of rounding, subnormal results are zero.
    pub(super) const CONTROL: u64 = 0x0040 | TRAPS | ROUNDING | 0x8000;
    pub(super) const STANDARD: u64 = TRAPS;
    const TRAPS: u64 = 0x1f80;
    const ROUNDING: u64 = 0x6000;

    pub(super) const NAMED: &[(u64, u64, &str)] = &[
        (0x8000, 0x8000, "subnormal results are flushed to zero"),
        (0x0040, 0x0040, "subnormal operands are taken for zero"),
        (ROUNDING, 0x2000, "numbers are rounded down"),
        (ROUNDING, 0x4000, "numbers are rounded up"),
        (ROUNDING, 0x6000, "numbers are rounded towards zero"),
    ];

    #[allow(unsafe_code, reason = "the only way to the control register")]
    pub(super) fn read() -> u64 {
        let mut control = 0u32;
        // SAFETY: the instruction stores four bytes where it is told to.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags)) };
        u64::from(control)
    }

    #[allow(unsafe_code, reason = "the only way to the control register")]
    pub(super) fn write(control: u64) {
        let control = control as u32;
        // SAFETY: the instruction loads four bytes, of which all but control bits are as they were read.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    use std::arch::asm;

    /// Flushing of single and double precision, and of half precision; the direction of rounding.
    pub(super) const CONTROL: u64 = 1 << 24 | 1 << 19 | ROUNDING;
    pub(super) const STANDARD: u64 = 0;
    const ROUNDING: u64 = 3 << 22;

    pub(super) const NAMED: &[(u64, u64, &str)] = &[
        (1 << 24, 1 << 24, "subnormal numbers are flushed to zero"),
        (1 << 19, 1 << 19, "subnormal float16 numbers are flushed to zero"),
        (ROUNDING, 2 << 22, "numbers are rounded down"),
        (ROUNDING, 1 << 22, "numbers are rounded up"),
        (ROUNDING, 3 << 22, "numbers are rounded towards zero"),
    ];

    #[allow(unsafe_code, reason = "the only way to the control register")]
    pub(super) fn read() -> u64 {
        let control: u64;
        // SAFETY: the instruction reads a register of this thread.
        unsafe { asm!("mrs {}, fpcr", out(reg) control, options(nostack, preserves_flags)) };
        control
    }

    #[allow(unsafe_code, reason = "the only way to the control register")]
    pub(super) fn write(control: u64) {
        // SAFETY: the instruction writes a register of this thread, of which all but control bits are as they were read.
        unsafe { asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
    }
}

/// Nothing is known of other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod processor {
    pub(super) const CONTROL: u64 = 0;
    pub(super) const STANDARD: u64 = 0;
    pub(super) const NAMED: &[(u64, u64, &str)] = &[];

    pub(super) fn read() -> u64 {
        0
    }

    pub(super) fn write(_control: u64) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// Each way in which a thread can differ, of those that have names.
    fn others() -> Vec<FloatEnvironment> {
        processor::NAMED.iter().map(|(mask, bits, _)| FloatEnvironment((processor::STANDARD & !mask) | bits)).collect()
    }

    #[test]
    fn every_other_state_is_entered_named_and_left() {
        assert_eq!(FloatEnvironment::current(), FloatEnvironment::STANDARD);
        assert_eq!(FloatEnvironment::STANDARD.differences(), [""; 0]);
        for other in others() {
            other.set();
            assert_eq!((FloatEnvironment::current(), FloatEnvironment::outside()), (other, other));
            assert_eq!(other.differences().len(), 1, "{other:?}");
            {
                let _outer = FloatEnvironment::enter_standard();
                let _inner = FloatEnvironment::enter_standard();
                assert_eq!(
                    (FloatEnvironment::current(), FloatEnvironment::outside()),
                    (FloatEnvironment::STANDARD, other)
                );
                assert_eq!(std::thread::spawn(FloatEnvironment::current).join().unwrap(), FloatEnvironment::STANDARD);
            }
            assert_eq!(FloatEnvironment::current(), other);
            FloatEnvironment::STANDARD.set();
        }
    }

    #[test]
    fn numbers_are_computed_by_it() {
        let (one, little) = (black_box(1.0f64), black_box(1e-30f64));
        assert_eq!(one + little, 1.0);
        let up = others().into_iter().find(|other| other.differences() == ["numbers are rounded up"]).unwrap();
        up.set();
        let sum = black_box(black_box(one) + black_box(little));
        FloatEnvironment::STANDARD.set();
        assert!(sum > 1.0);
    }
}
