//! The ways in which correct kernels of one op differ: order of summation, routes of exp and
//! division, form of a variance.

use gpuemu_engine::schema::{Precision, SummationOrder, VarianceForm};
use gpuemu_tensor::DType;

/// How eˣ is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpRoute {
    Direct,
    /// exp2(x·log₂e), accurately.
    Exp2,
    /// exp2(x·log₂e) as the special-function unit does it.
    Approximate,
}

/// How a quotient is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    Exact,
    /// Times the rounded reciprocal.
    Reciprocal,
    /// Times a reciprocal that flushes.
    Approximate,
}

/// How a tanh is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TanhRoute {
    Direct,
    /// 2σ(2x) − 1.
    Sigmoid,
    /// ±(1 − e)/(1 + e) with e = exp(−2|x|).
    Quotient,
}

/// One way to write a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    pub order: SummationOrder,
    pub exp: ExpRoute,
    pub division: Division,
    pub tanh: TanhRoute,
    /// exp2(x·c − m·c) in place of exp2((x − m)·c).
    pub folded: bool,
    pub variance: VarianceForm,
    /// Elements that one program of a flat kernel handles.
    pub block: usize,
    /// Dtype that intermediates are rounded to.
    pub intermediate: Option<DType>,
    /// Dtype of running sums, where it is narrower than float32.
    pub accumulate: Option<DType>,
}

impl Style {
    /// What Triton makes of a plain kernel: a tree over the row, approximate exp and division.
    pub const TRITON: Style = Style {
        order: SummationOrder::Pairwise,
        exp: ExpRoute::Approximate,
        division: Division::Approximate,
        tanh: TanhRoute::Sigmoid,
        folded: false,
        variance: VarianceForm::TwoPass,
        block: 1024,
        intermediate: None,
        accumulate: None,
    };

    /// What NumPy does in float32.
    pub const NUMPY: Style =
        Style { exp: ExpRoute::Direct, division: Division::Exact, tanh: TanhRoute::Direct, ..Style::TRITON };

    /// With another order of summation.
    pub const fn ordered(self, order: SummationOrder) -> Style {
        Style { order, ..self }
    }

    /// The precision class that a kernel of this style declares.
    pub fn precision(&self) -> Precision {
        Precision {
            order: Some(self.order),
            folded: self.folded,
            variance: Some(self.variance),
            intermediate: self.intermediate,
            accumulate: self.accumulate,
            ..Precision::default()
        }
    }
}
