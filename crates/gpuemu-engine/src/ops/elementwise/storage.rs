//! How the result of a kernel's last operation reaches memory.

use gpuemu_tensor::DType;

use crate::ops::Call;
use crate::schema::{FinalRounding, Units};

/// The last operation of a formula: its rounding is the output's own where the accumulator is what is stored.
pub(in crate::ops) struct Storage {
    units: Units,
    accumulator: DType,
    /// Whether the result is stored as it was computed.
    direct: bool,
}

impl Storage {
    /// The storage of a call.
    pub fn of(call: &Call<'_>) -> Self {
        let widest = if call.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let accumulator = call.precision.accumulate.unwrap_or(widest);
        let direct = accumulator == call.dtype && call.precision.rounding == FinalRounding::Nearest;
        Self { units: call.units, accumulator, direct }
    }

    /// δ after one more correctly rounded operation, whose operands bring an error of `carried`.
    #[inline]
    pub fn delta(&self, y: f64, carried: f64) -> f64 {
        let units = &self.units;
        // Exact operands give the one right answer; an error before it adds to what a float64 reference rounds away.
        let own = if self.direct && (carried == 0.0 || units.reference == 0.0) || carried == 0.0 && self.holds(y) {
            0.0
        } else {
            units.u * (y.abs() + carried) + units.eta
        };
        carried + own + units.flush
    }

    fn holds(&self, y: f64) -> bool {
        match self.accumulator {
            DType::F64 => true,
            DType::F32 => f64::from(y as f32) == y,
            narrow => narrow.decode(narrow.encode(y)) == y,
        }
    }
}
