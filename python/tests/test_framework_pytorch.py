"""PyTorch's own ops pass, wrong kernels on its tensors do not: forward, backward, compiled and custom."""

from __future__ import annotations

import pytest
from framework_packages import require
from framework_suites import DTYPES, assert_not_flagged, precision

import gpuemu

torch = require("torch")
functional = torch.nn.functional


def layer_norm(input, weight=None, bias=None, eps=1e-5):
    return functional.layer_norm(input, input.shape[-1:], weight, bias, eps)


def rms_norm(input, weight=None, eps=1e-5):
    return functional.rms_norm(input, input.shape[-1:], weight, eps)


def cross_entropy(input, target, label_smoothing=0.0, ignore_index=-100):
    return functional.cross_entropy(
        input, target, ignore_index=ignore_index, reduction="none", label_smoothing=label_smoothing
    )


def attention(q, k, v, causal=False):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)


OPS = {
    "softmax": (lambda x: torch.softmax(x, -1), {}, {}),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), {"rounded": True}, {}),
    "layernorm": (layer_norm, {}, {}),
    "rmsnorm": (rms_norm, {}, {}),
    "matmul": (torch.matmul, {}, {}),
    "gelu": (functional.gelu, {"fast_erf": True}, {}),
    "gelu_tanh": (lambda x: functional.gelu(x, approximate="tanh"), {"rounded": True}, {}),
    "attention": (attention, {"rounded": True}, {"kwargs": {"masked_rows_zero": True}}),
    "cross_entropy": (cross_entropy, {"rounded": True}, {}),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_its_own_ops_are_not_flagged(op, dtype):
    function, declared, options = OPS[op]
    assert_not_flagged(op, function, "pytorch", dtype, precision(dtype, **declared), 8, **options)


def accumulating_matmul(dtype):
    """A matmul that keeps its running sum in a dtype, as a kernel without a wide accumulator does."""

    def matmul(a, b):
        total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
        for k in range(a.shape[1]):
            total = (total.float() + a[:, k, None].float() * b[None, k, :].float()).to(dtype)
        return total.to(a.dtype)

    return matmul


SIZES = {"K": [256, 2048], "M": [1, 3], "N": [1, 3]}


def test_accumulation_in_bfloat16_is_caught():
    options = {
        "framework": "pytorch",
        "dtypes": ["bfloat16"],
        "sizes": SIZES,
        "budget": 50_000,
        "store": False,
        "repeats": 2,
        "seed": 3,
    }
    report = gpuemu.check("matmul", accumulating_matmul(torch.bfloat16), cases=12, raises=False, **options)
    assert report.status == "failed"
    assert report.report.failed >= 10
    assert gpuemu.check("matmul", accumulating_matmul(torch.float32), cases=12, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "op", ["softmax", "layernorm", "rmsnorm", "matmul", "gelu", "attention", "cross_entropy"]
)
def test_its_own_gradients_are_not_flagged(op, dtype):
    function, declared, options = OPS[op]
    sizes = {"sizes": {"B": [1, 2], "H": [1, 2], "G": [1, 2]}} if op == "attention" else {}
    report = gpuemu.check(
        op,
        function,
        framework="pytorch",
        cases=10,
        seed=11,
        dtypes=[dtype],
        values="regular",
        precision=precision(dtype, **declared),
        check_backward=True,
        store=False,
        **sizes,
        **options,
    )
    assert report.backward.report.passed >= 8


class SoftmaxWithoutItsSum(torch.autograd.Function):
    """A softmax whose backward drops the term that couples the elements of a row."""

    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return y * gradient


def test_a_wrong_backward_is_caught_although_the_forward_is_right():
    with pytest.raises(AssertionError, match=r"softmax\.backward: .* cases failed") as caught:
        gpuemu.check(
            "softmax",
            SoftmaxWithoutItsSum.apply,
            framework="pytorch",
            cases=10,
            store=False,
            check_backward=True,
        )
    assert "'grad_input'" in str(caught.value)
    assert "check_backward=True" in str(caught.value)


def test_a_gradient_that_is_right_for_ones_only_is_caught():
    class Summed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum(-1)

        @staticmethod
        def backward(ctx, gradient):
            # Right where the upstream gradient is one everywhere, as `y.sum().backward()` has it.
            return torch.ones(*gradient.shape, 5)

    op = gpuemu.op("row_sum", "input[M,5] -> out[M]", lambda input: input.sum(-1), tolerance=1e-4)
    report = gpuemu.check(
        op, Summed.apply, framework="pytorch", dtypes=["float32"], values="regular", sizes={"M": [3, 4]},
        cases=5, store=False, check_backward=True, raises=False,
    )  # fmt: skip
    assert report.status == "passed"
    assert report.backward.status == "failed"


def test_the_gradient_of_a_custom_op_may_be_given():
    def gradient(input, grad_out):
        return 2.0 * input * grad_out

    def check(reference_gradient):
        op = gpuemu.op("square", "input[M] -> out[M]", lambda input: input**2, gradient=reference_gradient)
        options = {"framework": "pytorch", "dtypes": ["float32"], "values": "regular", "cases": 10}
        return gpuemu.check(op, lambda x: x * x, check_backward=True, store=False, raises=False, **options)

    assert check(gradient).passed
    assert not check(lambda input, grad_out: 3.0 * input * grad_out).passed


def test_a_compiled_function_is_checked_as_it_is():
    compiled = torch.compile(lambda x: torch.softmax(x, -1), backend="eager", dynamic=True)
    assert gpuemu.check("softmax", compiled, framework="pytorch", cases=20, store=False, repeats=50)


def test_a_custom_op_of_torch_library_is_checked_as_it_is():
    @torch.library.custom_op("gpuemu_tests::softmax", mutates_args=())
    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(output)

    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return y * (gradient - (y * gradient).sum(-1, keepdim=True))

    torch.library.register_autograd("gpuemu_tests::softmax", backward, setup_context=setup)
    options = {"framework": "pytorch", "cases": 15, "store": False, "values": "regular"}
    assert gpuemu.check("softmax", torch.ops.gpuemu_tests.softmax, check_backward=True, **options)


def test_a_module_is_checked_through_its_forward():
    class Tail(torch.nn.Module):
        def forward(self, x):
            y = torch.softmax(x, -1)
            y[..., x.shape[-1] // 64 * 64 :] = 0
            return y

    with pytest.raises(AssertionError, match="tail tile|padding"):
        gpuemu.check("softmax", Tail(), framework="pytorch", cases=30, store=False, sizes={"H": (65, 200)})


def test_an_input_that_is_changed_in_place_is_reported():
    report = gpuemu.check(
        "relu", lambda x: torch.relu_(x).clone(), framework="pytorch", store=False, raises=False
    )
    assert {finding.check for result in report.failures for finding in result.failures} >= {"input_modified"}


def test_an_output_of_gpuemu_is_poisoned_and_guarded():
    def forgets_the_last(input, out):
        torch.clamp(input, min=0, out=out)
        if out.numel():
            out.view(-1)[-1] = float("nan")

    def right(input, out):
        torch.clamp(input, min=0, out=out)

    assert gpuemu.check("relu", right, framework="pytorch", store=False)
    assert not gpuemu.check("relu", forgets_the_last, framework="pytorch", store=False, raises=False)


def test_a_block_of_validations_uses_pytorch_and_fails_at_its_end():
    from gpuemu.frameworks import validate_pytorch

    with validate_pytorch() as validation:
        assert validation.check("softmax", lambda x: torch.softmax(x, -1), cases=10, store=False).passed
        x = torch.randn(4, 33)
        assert validation.run("softmax", lambda x: torch.softmax(x, -1), x).shape == (4, 33)
    with (
        pytest.raises(gpuemu.ValidationError, match="1 of 1 validations failed"),
        validate_pytorch() as validation,
    ):
        validation.run("softmax", lambda x: torch.softmax(x, 0), torch.randn(4, 33))


def test_the_gradients_of_optional_inputs_are_checked_too():
    def detached(input, weight=None, bias=None, eps=1e-5):
        return layer_norm(input, None if weight is None else weight.detach() * 1.0, bias, eps)

    options = {"framework": "pytorch", "cases": 8, "values": "regular", "store": False, "seed": 4}
    assert gpuemu.check("layernorm", layer_norm, check_backward=True, **options)
    report = gpuemu.check("layernorm", detached, check_backward=True, raises=False, **options)
    assert report.status == "passed"
    assert "'grad_weight'" in str(report.backward)
