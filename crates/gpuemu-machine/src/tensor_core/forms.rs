//! Which products of matrices there are.

use super::element::Element::{self, B1, Bf16, E4m3, E5m2, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};

/// Shapes and types of a family of products.
pub(super) struct Form {
    /// m, n and k.
    pub(super) shapes: &'static [(usize, usize, usize)],
    /// Types of A and B.
    pub(super) operands: Operands,
    /// Types of D and C.
    pub(super) accumulators: &'static [(Element, Element)],
}

/// Types of A and B.
pub(super) enum Operands {
    /// Both of this type.
    Same(Element),
    /// Each any of these.
    Any(&'static [Element]),
}

impl Form {
    /// Whether a product is of this form.
    pub(super) fn has(&self, shape: (usize, usize, usize), a: Element, b: Element, d: Element, c: Element) -> bool {
        let operands = match self.operands {
            Operands::Same(element) => a == element && b == element,
            Operands::Any(elements) => elements.contains(&a) && elements.contains(&b),
        };
        operands && self.shapes.contains(&shape) && self.accumulators.contains(&(d, c))
    }
}

const SINGLE: &[(Element, Element)] = &[(F32, F32)];
const SINGLE_OR_HALF: &[(Element, Element)] = &[(F32, F32), (F16, F16)];
const MIXED: &[(Element, Element)] = &[(F32, F32), (F16, F16), (F32, F16), (F16, F32)];
const INTEGER: &[(Element, Element)] = &[(S32, S32)];
const DOUBLE: &[(Element, Element)] = &[(F64, F64)];
const WMMA_SHAPES: &[(usize, usize, usize)] = &[(16, 16, 16), (8, 32, 16), (32, 8, 16)];

/// The products of `mma.sync`, up to `sm_90`, without `m8n8k4` of half precision.
pub(super) const MMA: &[Form] = &[
    Form { shapes: &[(16, 8, 8), (16, 8, 16)], operands: Operands::Same(F16), accumulators: SINGLE_OR_HALF },
    Form { shapes: &[(16, 8, 8), (16, 8, 16)], operands: Operands::Same(Bf16), accumulators: SINGLE },
    Form { shapes: &[(16, 8, 4), (16, 8, 8)], operands: Operands::Same(Tf32), accumulators: SINGLE },
    Form { shapes: &[(16, 8, 16), (16, 8, 32)], operands: Operands::Any(&[E4m3, E5m2]), accumulators: SINGLE_OR_HALF },
    Form {
        shapes: &[(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)],
        operands: Operands::Same(F64),
        accumulators: DOUBLE,
    },
    Form { shapes: &[(8, 8, 16), (16, 8, 16), (16, 8, 32)], operands: Operands::Any(&[S8, U8]), accumulators: INTEGER },
    Form { shapes: &[(8, 8, 32), (16, 8, 32), (16, 8, 64)], operands: Operands::Any(&[S4, U4]), accumulators: INTEGER },
    Form { shapes: &[(8, 8, 128), (16, 8, 128), (16, 8, 256)], operands: Operands::Same(B1), accumulators: INTEGER },
];

/// `mma.sync.m8n8k4` of half precision.
pub(super) const QUAD_PAIRS: Form =
    Form { shapes: &[(8, 8, 4)], operands: Operands::Same(F16), accumulators: &[(F32, F32), (F16, F16), (F32, F16)] };

/// The products of `wmma.mma`.
pub(super) const WMMA: &[Form] = &[
    Form { shapes: WMMA_SHAPES, operands: Operands::Same(F16), accumulators: MIXED },
    Form { shapes: WMMA_SHAPES, operands: Operands::Same(Bf16), accumulators: SINGLE },
    Form { shapes: WMMA_SHAPES, operands: Operands::Same(S8), accumulators: INTEGER },
    Form { shapes: WMMA_SHAPES, operands: Operands::Same(U8), accumulators: INTEGER },
    Form { shapes: &[(16, 16, 8)], operands: Operands::Same(Tf32), accumulators: SINGLE },
    Form { shapes: &[(8, 8, 4)], operands: Operands::Same(F64), accumulators: DOUBLE },
    Form { shapes: &[(8, 8, 32)], operands: Operands::Same(S4), accumulators: INTEGER },
    Form { shapes: &[(8, 8, 32)], operands: Operands::Same(U4), accumulators: INTEGER },
    Form { shapes: &[(8, 8, 128)], operands: Operands::Same(B1), accumulators: INTEGER },
];
