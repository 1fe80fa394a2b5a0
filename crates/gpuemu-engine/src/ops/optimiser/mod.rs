//! Steps of optimisers, written over their state.

pub(in crate::ops) mod adamw;
pub(in crate::ops) mod lion;
pub(in crate::ops) mod sgd;

use super::expectation::overflows;
use super::{Arithmetic, BuiltIn, Overflow, Rounded};

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![adamw::op(), lion::op(), sgd::op()]
}

/// A decay rate β and 1 − β, which a kernel may compute from its own β.
struct Rate {
    kept: Rounded,
    added: Rounded,
}

impl Rate {
    fn of(beta: f64, arithmetic: &Arithmetic) -> Self {
        let kept = arithmetic.constant(beta);
        Self { kept, added: arithmetic.subtract(Rounded::exact(1.0), kept) }
    }

    /// β·old + (1 − β)·new.
    fn blend(&self, old: Rounded, new: Rounded, arithmetic: &Arithmetic) -> Rounded {
        if old.value == 0.0 && new.value == 0.0 && old.error + new.error == 0.0 {
            return Rounded::exact(0.0);
        }
        let kept = arithmetic.slack(arithmetic.multiply(old, self.kept), 1.0);
        let added = arithmetic.slack(arithmetic.multiply(new, self.added), 1.0);
        arithmetic.add(kept, added)
    }

    /// The same, or old + (1 − β)·(new − old): that is infinity minus infinity where the old moment is infinite or the
    /// difference overflows.
    fn interpolate(&self, old: f64, new: f64, arithmetic: &Arithmetic) -> Rounded {
        let mut blended = self.blend(Rounded::exact(old), Rounded::exact(new), arithmetic);
        let overflows = new.is_finite() && overflows(old.abs() + new.abs(), arithmetic.units.max);
        if overflows || old.is_infinite() {
            blended.overflow = blended.overflow.max(Overflow::Before);
        }
        blended
    }
}

/// The parameter after decoupled weight decay: p·(1 − lr·weight_decay), or p − lr·weight_decay·p.
fn decayed(parameter: f64, lr: f64, weight_decay: f64, arithmetic: &Arithmetic) -> Rounded {
    let shrink = arithmetic.multiply(arithmetic.constant(lr), arithmetic.constant(weight_decay));
    let factor = arithmetic.subtract(Rounded::exact(1.0), shrink);
    let mut kept = arithmetic.multiply(Rounded::exact(parameter), factor);
    if parameter.is_infinite() {
        // The second form is infinity minus infinity, or infinity times a decay of 0.
        kept.overflow = Overflow::Before;
    }
    kept
}
