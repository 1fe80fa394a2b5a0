//! Attention over packed, paged and split keys, and what prepares its inputs.

mod backward;
mod forms;
mod prepare;
mod row;

use gpuemu_engine::schema::SummationOrder;
use gpuemu_tensor::DType;

use crate::implementations::{Family, ORDERS, ROUTES};
use crate::kernel;
use crate::mutation::Mutation;
use crate::style::Style;

const ONLINE: Style = Style::TRITON.ordered(SummationOrder::Online(32));
const SMALL: Style = Style::NUMPY.ordered(SummationOrder::Online(16));
const ROUNDED: Style = Style { intermediate: Some(DType::BF16), ..ONLINE };
const HALF: Style = Style { intermediate: Some(DType::F16), ..ROUTES[1].ordered(SummationOrder::Sequential) };

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let mut styles = vec![ONLINE, SMALL, ROUNDED, HALF];
    styles.extend(ORDERS);
    let attending = |more: &[Mutation]| -> Vec<Mutation> {
        let common = [
            Mutation::DropFactor,
            Mutation::Constant(1.01),
            Mutation::SwapOperands,
            Mutation::SkipElement,
            Mutation::ScaleOutput(1.01),
        ];
        common.iter().chain(more).copied().collect()
    };
    let named = Mutation::Named;
    let varlen = attending(&[
        Mutation::OffByOne,
        Mutation::DropRescale,
        Mutation::PadZero(32),
        named("causal mask aligned at the other corner"),
        named("keys of the next sequence enter"),
    ]);
    let decode = attending(&[
        Mutation::OffByOne,
        Mutation::Overwrite,
        named("length ignored"),
        named("splits averaged"),
        named("powers of two"),
    ]);
    let paged = attending(&[
        Mutation::OffByOne,
        Mutation::PadZero(16),
        named("pages taken by their place"),
        named("last page not masked"),
        named("last split left out"),
    ]);
    let bias = attending(&[
        Mutation::DropRescale,
        Mutation::PadZero(32),
        named("bias of the first head"),
        named("bias scaled"),
    ]);
    let merge = [
        Mutation::DropMaximum,
        Mutation::ScaleOutput(1.01),
        named("splits averaged"),
        named("powers of two"),
        named("last split left out"),
    ];
    let backward = [
        Mutation::DropFactor,
        Mutation::Constant(1.01),
        Mutation::SkipElement,
        Mutation::ScaleOutput(1.01),
        named("row sum not subtracted"),
        named("scale missing on grad_k"),
        named("causal mask missing"),
    ];
    let rotation = [Mutation::FlipSign, Mutation::SwapOperands, Mutation::OffByOne, Mutation::ScaleOutput(1.01)];
    let mut in_place = rotation.to_vec();
    in_place.extend([named("place in place of position"), named("first half read after it is overwritten")]);
    let cache = [
        Mutation::SwapOperands,
        Mutation::OffByOne,
        Mutation::ScaleOutput(1.01),
        named("tokens taken by place"),
        named("page and row swapped"),
    ];
    let mut gradient_styles = ORDERS.to_vec();
    gradient_styles.extend([HALF, Style { intermediate: Some(DType::BF16), ..Style::TRITON }]);
    vec![
        Family::new(kernel!("attention_varlen", forms::varlen), &styles, &varlen),
        Family::new(kernel!("decode_attention", forms::decode), &styles, &decode),
        Family::new(kernel!("paged_attention", forms::paged), &styles, &paged),
        Family::new(kernel!("attention_bias", forms::biased), &styles, &bias),
        Family::new(kernel!("merge_attention_states", forms::merged), &ORDERS, &merge),
        Family::new(kernel!("attention_backward", backward::backward), &gradient_styles, &backward),
        Family::new(kernel!("rope_cached", prepare::cached), &ROUTES, &rotation),
        Family::new(kernel!("rope_", prepare::in_place), &ROUTES, &in_place),
        Family::new(kernel!("reshape_and_cache", prepare::cache), &ROUTES, &cache),
    ]
}
