//! Correct kernels of every op, in styles as different as public kernels are.

use gpuemu_engine::schema::{SummationOrder, VarianceForm};
use gpuemu_tensor::DType;

use crate::kernels::{Kernel, all};
use crate::mutants::mutants;
use crate::mutation::Mutation;
use crate::style::{Division, ExpRoute, Style, TanhRoute};

const TRITON: Style = Style::TRITON;
const NUMPY: Style = Style::NUMPY;

const SEQUENTIAL: SummationOrder = SummationOrder::Sequential;
const TREE_128: SummationOrder = SummationOrder::TileTree(128);
const LANES: SummationOrder = SummationOrder::Lanes32;
const SPLIT_4: SummationOrder = SummationOrder::Split(4);
const TILE_32: SummationOrder = SummationOrder::Tile(32);

/// Routes of exp, division and tanh, four of each.
pub const ROUTES: [Style; 4] = [
    NUMPY,
    Style { exp: ExpRoute::Exp2, division: Division::Reciprocal, tanh: TanhRoute::Sigmoid, block: 256, ..TRITON },
    TRITON,
    Style { exp: ExpRoute::Direct, division: Division::Approximate, tanh: TanhRoute::Quotient, block: 64, ..TRITON },
];

/// Orders of summation, with a route of exp and division each.
pub const ORDERS: [Style; 5] =
    [NUMPY, ROUTES[1].ordered(SEQUENTIAL), TRITON.ordered(TREE_128), TRITON.ordered(LANES), ROUTES[3].ordered(SPLIT_4)];

/// With exp2(x·c − m·c).
pub const FOLDED: Style = Style { folded: true, ..TRITON.ordered(TREE_128) };

/// Forms of a variance, with an order of summation each; the last folds the mean into an addend.
pub const VARIANCES: [Style; 5] = [
    NUMPY,
    TRITON.ordered(SEQUENTIAL),
    Style { variance: VarianceForm::Welford, ..TRITON.ordered(SEQUENTIAL) },
    Style { variance: VarianceForm::OnePass, ..TRITON.ordered(TREE_128) },
    Style { folded: true, ..TRITON.ordered(LANES) },
];

/// Tiles first: in one running sum there is no carry to lose.
const PREFIXES: [Style; 4] = [
    TRITON.ordered(TILE_32),
    TRITON.ordered(SEQUENTIAL),
    TRITON.ordered(SummationOrder::Tile(128)),
    TRITON.ordered(SummationOrder::Tile(512)),
];

#[derive(Debug, Clone, Copy)]
pub struct Implementation {
    pub kernel: Kernel,
    /// Its style, which is also what it declares.
    pub style: Style,
}

/// One op with its correct kernels; the first is the one that mutants are made of.
#[derive(Debug, Clone)]
pub struct Family {
    pub op: &'static str,
    /// Correct kernels, in at least two styles.
    pub implementations: Vec<Implementation>,
    /// What makes the first of them wrong.
    pub mutants: Vec<Mutation>,
}

impl Family {
    /// A kernel in several styles, and its mutants.
    pub fn new(kernel: Kernel, styles: &[Style], mutants: &[Mutation]) -> Self {
        let implementations = styles.iter().map(|style| Implementation { kernel, style: *style }).collect();
        Self { op: kernel.op, implementations, mutants: mutants.to_vec() }
    }
}

fn family(kernel: Kernel, styles: &[Style]) -> Family {
    Family::new(kernel, styles, &mutants(kernel.op))
}

/// The order that mutants declare: tiles, as in the measured prototype.
fn tiled_first(kernel: Kernel, styles: &[Style]) -> Family {
    let mut family = family(kernel, styles);
    family.implementations.sort_by_key(|implementation| implementation.style.order != TREE_128);
    family
}

/// Every op of the catalogue.
pub fn families() -> Vec<Family> {
    let mut families: Vec<Family> = [
        all::RELU,
        all::LEAKY_RELU,
        all::ELU,
        all::SIGMOID,
        all::SILU,
        all::TANH,
        all::GELU,
        all::GELU_TANH,
        all::SWIGLU,
        all::ROPE,
    ]
    .map(|kernel| family(kernel, &ROUTES))
    .to_vec();
    for kernel in [all::SOFTMAX, all::LOG_SOFTMAX, all::CROSS_ENTROPY] {
        let mut styles = ORDERS.to_vec();
        styles.push(FOLDED);
        families.push(tiled_first(kernel, &styles));
    }
    for kernel in [all::SUM, all::MEAN, all::MAX, all::RMSNORM, all::L2NORM] {
        families.push(tiled_first(kernel, &ORDERS));
    }
    families.push(family(all::CUMSUM, &PREFIXES));
    families.push(family(all::LAYERNORM, &VARIANCES));
    families.push(family(
        all::MATMUL,
        &[TRITON.ordered(SEQUENTIAL), TRITON.ordered(TILE_32), TRITON.ordered(LANES), TRITON.ordered(SPLIT_4), NUMPY],
    ));
    families.push(attention());
    families.extend(crate::catalogue::families());
    families
}

fn attention() -> Family {
    let rounded = |dtype| Style { intermediate: Some(dtype), ..TRITON.ordered(SummationOrder::Online(32)) };
    let online = |size| Implementation { kernel: all::FLASH, style: TRITON.ordered(SummationOrder::Online(size)) };
    let mut implementations = vec![online(32), online(16)];
    for style in [NUMPY, TRITON.ordered(SEQUENTIAL), TRITON.ordered(LANES)] {
        implementations.push(Implementation { kernel: all::ATTENTION, style });
    }
    for dtype in [DType::F16, DType::BF16] {
        implementations.push(Implementation { kernel: all::FLASH, style: rounded(dtype) });
    }
    Family { op: "attention", implementations, mutants: mutants("attention") }
}
