"""How the kernels of this folder are launched: grids, arguments, and the variants that are compiled.

Few variants a kernel: one block for short rows and one for long ones, float32 and one 16-bit dtype.
"""

from __future__ import annotations

from launch import Kernel, kernels, numbers, strides, tensors, variants_of

HALF = ("float32", "float16")
BRAIN = ("float32", "bfloat16")
FLAT_BLOCK = 256
TILE = 16

NOT_EMPTY = "numel(out) > 0"
_MATRIX = "size({0}, 0) * size({0}, -1) == numel({0})"
"""Whether a tensor is a matrix, but for dims of size 1: its first stride is then that of a row."""


def _rows(column: str = "H") -> list[tuple[str, str, dict[str, int], int]]:
    """Return blocks of whole rows: one warp for short ones, four for long ones."""
    short, long = 64, 512
    return [
        (str(short), f"{column} <= {short}", {"BLOCK": short}, 1),
        (str(long), f"{column} > {short} && {column} <= {long}", {"BLOCK": long}, 4),
    ]


def _one(**constants: int) -> list[tuple[str, str, dict[str, int], int]]:
    """Return the only block of a kernel that goes through its elements by blocks."""
    return [("", "", constants, 1)]


def norms() -> list[Kernel]:
    """Return norms and moments of rows or groups."""
    affine = tensors("out", "input", "weight", "bias")
    contiguous = variants_of(HALF, _rows(), NOT_EMPTY)
    return [
        *kernels(
            "layernorm.py",
            ["layernorm_affine", "layernorm_tail_in_variance", "layernorm_fixed_eps"],
            ("rows(input)",),
            [*affine, ("H", "i32"), ("eps", "fp32")],
            contiguous,
        ),
        *kernels(
            "groupnorm.py",
            ["groupnorm_groups", "groupnorm_tail_in_variance", "groupnorm_first_sample"],
            ("N", "num_groups"),
            [*affine, *numbers("i32", "C", "L"), ("eps", "fp32")],
            variants_of(HALF, _rows("C * L"), NOT_EMPTY),
        ),
        *kernels(
            "var.py",
            ["var_rows", "var_tail_lanes"],
            ("rows(input)",),
            [*tensors("out", "input"), *numbers("i32", "H", "correction")],
            variants_of(BRAIN, _rows(), NOT_EMPTY),
        ),
        *kernels(
            "rmsnorm.py",
            ["rmsnorm_strided", "rmsnorm_row_is_width"],
            ("rows(input)",),
            [
                *tensors("out", "input", "weight"),
                ("H", "i32"),
                *strides("input", 0, -1),
                *strides("weight", 0),
                ("eps", "fp32"),
            ],
            variants_of(BRAIN, _rows(), "!unit_offset", NOT_EMPTY, _MATRIX.format("input")),
        ),
        *kernels(
            "rmsnorm_chunks.py",
            ["rmsnorm_chunks", "rmsnorm_rows_left_over"],
            ("min(rows(input), 4)",),
            [*tensors("out", "input"), *numbers("i32", "rows(input)", "H"), ("eps", "fp32")],
            contiguous,
        ),
        *kernels(
            "l2norm.py",
            ["l2norm_rows", "l2norm_zero_row"],
            ("rows(input)",),
            [*tensors("out", "input"), ("H", "i32"), ("eps", "fp32")],
            variants_of(BRAIN, _rows(), "!eps_outside && !eps_is_minimum", NOT_EMPTY),
        ),
        *kernels(
            "fused_add_layernorm.py",
            ["fused_add_layernorm_rows", "fused_add_layernorm_in_place"],
            ("rows(input)",),
            [*tensors("out", "residual_out", "input", "residual"), ("H", "i32"), ("eps", "fp32")],
            variants_of(HALF, _rows(), "!round_residual", NOT_EMPTY),
        ),
    ]


def softmaxes() -> list[Kernel]:
    """Return softmax, its logarithm and its sum of exponentials, and losses made of them."""
    row = [*tensors("out", "input"), ("H", "i32")]
    labelled = [*tensors("out", "input"), ("target", "*i64"), ("V", "i32"), ("ignore_index", "i64")]
    return [
        *kernels(
            "softmax.py",
            [
                "softmax_strided",
                "softmax_row_is_width",
                "softmax_finite_sentinel",
                "softmax_exponentials_in_input",
            ],
            ("rows(input)",),
            [*row, *strides("input", 0, -1)],
            variants_of(HALF, _rows(), NOT_EMPTY, _MATRIX.format("input")),
        ),
        *kernels(
            "softmax_online.py",
            ["softmax_online", "softmax_online_infinite"],
            ("rows(input)",),
            row,
            variants_of(HALF, _one(BLOCK=32), NOT_EMPTY),
        ),
        *kernels(
            "logsumexp.py",
            ["logsumexp_online", "logsumexp_online_infinite", "logsumexp_no_rescale"],
            ("rows(input)",),
            row,
            variants_of(BRAIN, _one(BLOCK=32), NOT_EMPTY),
        ),
        *kernels(
            "log_softmax.py",
            ["log_softmax_rows"],
            ("rows(input)",),
            row,
            variants_of(BRAIN, _rows(), NOT_EMPTY),
        ),
        *kernels(
            "log_softmax.py",
            ["log_softmax_of_probabilities"],
            ("rows(input)",),
            row,
            variants_of(["bfloat16"], _rows(), NOT_EMPTY),
        ),
        *kernels(
            "cross_entropy.py",
            ["cross_entropy_rows"],
            ("N",),
            labelled,
            variants_of(HALF, _rows("V"), "label_smoothing == 0.0", NOT_EMPTY),
        ),
        *kernels(
            "cross_entropy.py",
            ["cross_entropy_of_probability"],
            ("N",),
            labelled,
            variants_of(["float16"], _rows("V"), "label_smoothing == 0.0", NOT_EMPTY),
        ),
    ]


def gradients() -> list[Kernel]:
    """Return backward kernels."""
    flat = (f"ceil_div(numel(grad_output), {FLAT_BLOCK})",)
    not_empty = "numel(grad_output) > 0"
    from_output = [
        *tensors("grad_input", "grad_output", "output"),
        ("H", "i32"),
        *strides("grad_output", 0, -1),
        *strides("output", 0, -1),
    ]
    logits = [
        *tensors("grad_input", "input"),
        ("target", "*i64"),
        *tensors("grad_output"),
        ("V", "i32"),
        ("ignore_index", "i64"),
        *strides("input", 0, 1),
        *strides("grad_output", 0),
    ]
    return [
        *kernels(
            "softmax_backward.py",
            ["softmax_backward_strided", "softmax_backward_stride_0"],
            ("rows(output)",),
            from_output,
            variants_of(HALF, _rows(), not_empty, _MATRIX.format("output")),
        ),
        *kernels(
            "log_softmax_backward.py",
            ["log_softmax_backward_strided", "log_softmax_backward_stride_0"],
            ("rows(output)",),
            from_output,
            variants_of(BRAIN, _rows(), not_empty, _MATRIX.format("output")),
        ),
        *kernels(
            "rmsnorm_backward.py",
            ["rmsnorm_backward_strided", "rmsnorm_backward_stride_0"],
            (1,),
            [
                *tensors("grad_input", "grad_weight", "grad_output", "input", "weight"),
                *numbers("i32", "rows(input)", "H"),
                *strides("grad_output", 0, -1),
                *strides("input", 0, -1),
                *strides("weight", 0),
                ("eps", "fp32"),
            ],
            variants_of(HALF, _rows(), "!unit_offset", not_empty, _MATRIX.format("input")),
        ),
        *kernels(
            "layernorm_backward.py",
            ["layernorm_backward_rows", "layernorm_backward_no_upstream"],
            (1,),
            [
                *tensors("grad_input", "grad_weight", "grad_bias", "grad_output", "input", "weight"),
                *numbers("i32", "rows(input)", "H"),
                ("eps", "fp32"),
            ],
            variants_of(BRAIN, _rows(), not_empty),
        ),
        *kernels(
            "cross_entropy_backward.py",
            ["cross_entropy_backward_rows", "cross_entropy_backward_no_upstream"],
            ("N",),
            logits,
            variants_of(BRAIN, _rows("V"), "label_smoothing == 0.0", not_empty),
        ),
        *kernels(
            "cross_entropy_backward.py",
            ["cross_entropy_backward_rounded"],
            ("N",),
            logits,
            variants_of(["bfloat16"], _rows("V"), "label_smoothing == 0.0", not_empty),
        ),
        *kernels(
            "gelu_backward.py",
            [
                "gelu_backward_flat",
                "gelu_backward_no_upstream",
                "gelu_backward_no_three",
                "gelu_backward_wrong_constant",
            ],
            flat,
            [*tensors("grad_input", "grad_output", "input"), ("numel(input)", "i64")],
            variants_of(HALF, _one(BLOCK=FLAT_BLOCK), "approximate", not_empty),
        ),
        *kernels(
            "swiglu.py",
            ["swiglu_backward_flat", "swiglu_backward_no_upstream", "swiglu_backward_gate_for_up"],
            flat,
            [*tensors("grad_gate", "grad_up", "grad_output", "gate", "up"), ("numel(up)", "i64")],
            variants_of(HALF, _one(BLOCK=FLAT_BLOCK), "numel(grad_up) > 0"),
        ),
    ]


def attentions() -> list[Kernel]:
    """Return attention, and the rotary embedding of its queries."""
    blocks = [("", "D <= 16", {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_D": 16}, 1)]
    decode_blocks = [("", "D <= 16", {"BLOCK_N": 16, "BLOCK_D": 16}, 1)]
    plain = "causal && softcap == 0.0 && scale == 0.0 && !bottom_right && !masked_rows_zero"
    every = [stride for name in "qkv" for stride in strides(name, 0, 1, 2, 3)]
    return [
        *kernels(
            "attention.py",
            [
                "attention_causal",
                "attention_causal_infinite",
                "attention_finite_sentinel",
                "attention_first_batch",
                "attention_total_not_rescaled",
            ],
            ("ceil_div(M, 16)", "B * H * G"),
            [
                *tensors("out", "q", "k", "v"),
                *numbers("i32", "H * G", "G", "M", "N", "D", "window"),
                *every,
            ],
            variants_of(HALF, blocks, plain, NOT_EMPTY),
        ),
        *kernels(
            "decode_attention.py",
            ["decode_attention_rows", "decode_attention_finite_sentinel", "decode_attention_first_length"],
            ("B * H * G",),
            [*tensors("out", "q", "k", "v"), ("seq_lens", "*i32"), *numbers("i32", "H", "G", "N", "D")],
            variants_of(BRAIN, decode_blocks, "softcap == 0.0 && scale == 0.0", NOT_EMPTY),
        ),
        *kernels(
            "rope_cached.py",
            ["rope_halves", "rope_first_batch", "rope_rotated_operand"],
            ("M", "H", "B"),
            [*tensors("out", "q", "cos", "sin"), ("P", "i32")],
            variants_of(HALF, [("", "P <= 32", {"BLOCK": 32}, 1)], "!interleaved", NOT_EMPTY),
        ),
    ]


def products() -> list[Kernel]:
    """Return products of matrices, in square tiles."""
    tiles = (f"ceil_div(M, {TILE})", f"ceil_div(N, {TILE})")
    sizes = numbers("i32", "M", "N", "K")
    tile = _one(BLOCK=TILE)
    matmul = [*tensors("out", "a", "b"), *sizes, *strides("a", 0, 1), *strides("b", 0, 1)]
    batch = [*tensors("out", "a", "b"), *sizes, *strides("a", 0, 1, 2), *strides("b", 0, 1, 2)]
    return [
        *kernels("matmul.py", ["matmul_square_tiles"], tiles, matmul, variants_of(BRAIN, tile, NOT_EMPTY)),
        *kernels(
            "matmul.py", ["matmul_in_bfloat16"], tiles, matmul, variants_of(["bfloat16"], tile, NOT_EMPTY)
        ),
        *kernels(
            "matmul.py",
            ["matmul_split", "matmul_split_uninitialised"],
            tiles,
            matmul,
            variants_of(["float32"], tile, "K > 0", NOT_EMPTY),
        ),
        *kernels(
            "bmm.py",
            ["bmm_tiles", "bmm_first_batch"],
            (*tiles, "B"),
            batch,
            variants_of(HALF, tile, NOT_EMPTY),
        ),
        *kernels(
            "addmm.py",
            ["addmm_tiles", "addmm_factors_swapped", "addmm_no_alpha"],
            tiles,
            [*tensors("out", "input", "mat1", "mat2"), *sizes, *numbers("fp32", "beta", "alpha")],
            variants_of(HALF, tile, NOT_EMPTY),
        ),
    ]


def reductions() -> list[Kernel]:
    """Return sums, extremes and products of rows, and sums of columns."""
    row = [*tensors("out", "input"), ("H", "i32")]
    by_blocks = variants_of(BRAIN, _one(BLOCK=32), NOT_EMPTY)
    in_bfloat16 = variants_of(["bfloat16"], _one(BLOCK=32), NOT_EMPTY)
    no_nan = variants_of(HALF, _rows(), "!propagate_nan", NOT_EMPTY)
    grid = ("rows(input)",)
    return [
        *kernels("sums.py", ["sum_blocks", "mean_blocks"], grid, row, by_blocks),
        *kernels("sums.py", ["sum_in_bfloat16", "mean_in_bfloat16"], grid, row, in_bfloat16),
        *kernels(
            "extremes.py",
            ["max_of_rows", "max_lanes_of_zero", "min_of_rows", "min_lanes_of_zero"],
            grid,
            row,
            no_nan,
        ),
        *kernels(
            "extremes.py",
            ["prod_of_rows", "prod_lanes_of_zero"],
            grid,
            row,
            variants_of(HALF, _rows(), NOT_EMPTY),
        ),
        *kernels(
            "sum_columns.py",
            ["sum_columns_split", "sum_columns_uninitialised"],
            ("ceil_div(N, 64)",),
            [*tensors("out", "input"), *numbers("i32", "M", "N")],
            variants_of(["float32"], _one(BLOCK=64, ROWS=8), "M > 0", NOT_EMPTY),
        ),
    ]


def others() -> list[Kernel]:
    """Return quantisation, gathered rows, transposed matrices and flat kernels."""
    flat = variants_of(HALF, _one(BLOCK=FLAT_BLOCK), NOT_EMPTY)
    table = [*tensors("out"), ("indices", "*i64"), *tensors("weight"), ("D", "i32")]
    copied = variants_of(BRAIN, _one(BLOCK=128), NOT_EMPTY)
    codes = [("q", "*i8"), ("scale", "*fp32"), *tensors("input"), ("H", "i32"), ("eps", "fp32")]
    groups = [
        ("packed", "*u8"),
        ("scale", "*fp32"),
        *tensors("input"),
        ("group_size", "i32"),
        ("eps", "fp32"),
    ]
    return [
        *kernels(
            "quantize.py",
            ["quantize_int8_rows", "quantize_int8_zero_row"],
            ("rows(input)",),
            codes,
            variants_of(BRAIN, _rows(), "numel(q) > 0"),
        ),
        *kernels(
            "quantize.py",
            ["quantize_int4_groups", "quantize_int4_zero_group"],
            ("N * Q",),
            groups,
            variants_of(HALF, [("", "group_size <= 128", {"BLOCK": 64}, 1)], "numel(packed) > 0"),
        ),
        *kernels(
            "embedding.py",
            ["embedding_strided", "embedding_row_is_width"],
            ("numel(indices)",),
            [*table, *strides("weight", 0, 1)],
            copied,
        ),
        *kernels(
            "embedding.py",
            ["embedding_packed", "embedding_int32_offset"],
            ("numel(indices)",),
            table,
            copied,
        ),
        *kernels(
            "transpose.py",
            ["transpose_square_tiles", "transpose_whole_tiles", "transpose_int32_offset"],
            (f"ceil_div(M, {TILE})", f"ceil_div(N, {TILE})"),
            [*tensors("out", "input"), *numbers("i32", "M", "N")],
            variants_of(BRAIN, _one(BLOCK=TILE), "M * N == numel(input)", NOT_EMPTY),
        ),
        *kernels(
            "swiglu.py",
            ["swiglu_flat", "swiglu_unmasked_store"],
            (f"ceil_div(numel(out), {FLAT_BLOCK})",),
            [*tensors("out", "gate", "up"), ("numel(out)", "i64")],
            flat,
        ),
        *kernels(
            "bias_add.py",
            ["bias_add_flat", "bias_add_unmasked_store"],
            (f"ceil_div(numel(out), {FLAT_BLOCK})",),
            [*tensors("out", "input", "bias"), ("numel(out)", "i64"), ("H", "i32")],
            variants_of(BRAIN, _one(BLOCK=FLAT_BLOCK), NOT_EMPTY),
        ),
    ]


KERNELS = [
    *norms(),
    *softmaxes(),
    *gradients(),
    *attentions(),
    *products(),
    *reductions(),
    *others(),
]
"""Of each file the right kernels, and after each its wrong twins."""
