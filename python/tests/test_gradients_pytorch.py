from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_packages import require
from tensor_layouts import numbers

from gpuemu.frameworks import NotAnArrayError, NotConnectedError, TensorData, adapter

torch = require("torch")
ADAPTER = adapter("pytorch")


def scaled(x: Any, y: Any) -> Any:
    return x * x * y


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        context.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(context: Any, upstream: Any) -> Any:
        x, y = context.saved_tensors
        return 2 * x * y * upstream, x * x * upstream


def custom_op() -> Any:
    @torch.library.custom_op("gpuemu_tests::scaled", mutates_args=())
    def op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() ** 2 * y.detach().numpy())

    def backward(context: Any, upstream: Any) -> Any:
        x, y = context.saved_tensors
        return 2 * x * y * upstream, x * x * upstream

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    op.register_autograd(backward, setup_context=keep)
    return op


FUNCTIONS = {
    "plain": lambda: scaled,
    "compiled, eager backend": lambda: torch.compile(scaled, backend="eager"),
    "compiled, autograd backend": lambda: torch.compile(scaled, backend="aot_eager"),
    "compiled, inductor": lambda: torch.compile(scaled),
    "autograd function": lambda: lambda x, y: Scaled.apply(x, y),
    "custom op": lambda: (lambda op: lambda x, y: op(x, y))(custom_op()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_gradients_of_all_kinds_of_functions(kind: str) -> None:
    inputs = {
        "x": ADAPTER.from_tensor_data(numbers([[1, 2], [3, 4]])).T,
        "y": ADAPTER.from_tensor_data(numbers([[5, 6], [7, 8]])),
    }
    upstream = ADAPTER.from_tensor_data(numbers([[1, 10], [100, 1000]]))
    of_x, of_y = ADAPTER.gradients(FUNCTIONS[kind](), inputs, ["x", "y"], upstream)
    assert of_x.tolist() == [[10, 360], [2800, 64000]]
    assert of_y.tolist() == [[1, 90], [400, 16000]]
    assert ADAPTER.to_numpy(of_x).dtype == np.float32
    assert not inputs["x"].requires_grad and not of_x.requires_grad


def test_the_function_gets_the_strides_and_the_memory_of_the_inputs() -> None:
    seen = []

    def look(x: Any, y: Any) -> Any:
        seen.append((x.data_ptr(), x.stride(), x.is_leaf, x.requires_grad, y.requires_grad))
        return x * y

    data = TensorData(np.zeros(80, np.uint8), "float32", (2, 3), (0, 2), 1)
    x = ADAPTER.from_tensor_data(data)
    (gradient,) = ADAPTER.gradients(look, {"x": x, "y": torch.ones(2, 3)}, ["x"], torch.ones(2, 3))
    assert seen == [(x.data_ptr(), (0, 2), True, True, False)]
    assert gradient.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_an_input_that_nothing_depends_on_has_the_gradient_zero() -> None:
    inputs = {"x": torch.ones(2), "y": torch.ones(3)}
    of_y, of_x = ADAPTER.gradients(lambda x, y: 2 * x, inputs, ["y", "x"], torch.ones(2))
    assert (of_y.tolist(), of_x.tolist()) == ([0, 0, 0], [2, 2])


def test_several_outputs_add_up_and_one_may_be_left_out() -> None:
    def several(x: Any) -> Any:
        return [x * 2, x.argmax(), x * 3]

    upstream = (torch.ones(2), None, torch.full((2,), 10.0))
    (gradient,) = ADAPTER.gradients(several, {"x": torch.ones(2)}, ["x"], upstream)
    assert gradient.tolist() == [32, 32]


def test_an_output_that_is_an_input_has_a_gradient() -> None:
    (gradient,) = ADAPTER.gradients(lambda x: x, {"x": torch.ones(2)}, ["x"], torch.ones(2))
    assert gradient.tolist() == [1, 1]


def test_gradients_are_had_where_they_are_switched_off() -> None:
    with torch.no_grad():
        (gradient,) = ADAPTER.gradients(lambda x: x * 2, {"x": torch.ones(2)}, ["x"], torch.ones(2))
    assert gradient.tolist() == [2, 2]
    with torch.inference_mode():
        inputs = {"x": ADAPTER.from_tensor_data(numbers([1.0, 2.0])), "y": torch.ones(2)}
        assert not inputs["x"].is_inference()
        of_x, of_y = ADAPTER.gradients(scaled, inputs, ["x", "y"], torch.ones(2))
    assert (of_x.tolist(), of_y.tolist()) == ([2, 4], [1, 4])


def test_an_output_that_is_not_connected_is_refused() -> None:
    weight = torch.ones(2, requires_grad=True)
    inputs = {"x": torch.ones(2)}
    with pytest.raises(NotConnectedError, match="no gradient flows from output 0 .* inputs x: "):
        ADAPTER.gradients(lambda x: x.detach() * 2, inputs, ["x"], torch.ones(2))
    with pytest.raises(NotConnectedError, match="from output 0"):
        ADAPTER.gradients(lambda x: x.detach() * weight, inputs, ["x"], torch.ones(2))
    with pytest.raises(NotConnectedError, match="from output 1"):
        ADAPTER.gradients(lambda x: (x * 2, x.detach() * weight), inputs, ["x"], [torch.ones(2)] * 2)


def test_what_does_not_fit_together_is_refused() -> None:
    inputs = {"x": torch.ones(2), "y": torch.ones(2)}
    with pytest.raises(ValueError, match="no input is called 'z'; the inputs: x, y"):
        ADAPTER.gradients(scaled, inputs, ["x", "z"], torch.ones(2))
    with pytest.raises(ValueError, match="no input is named"):
        ADAPTER.gradients(scaled, inputs, [], torch.ones(2))
    with pytest.raises(ValueError, match="2 upstream gradients for 1 outputs"):
        ADAPTER.gradients(scaled, inputs, ["x"], [torch.ones(2), torch.ones(2)])
    with pytest.raises(ValueError, match=r"output 0 has shape \(3,\), the output \(2,\)"):
        ADAPTER.gradients(scaled, inputs, ["x"], torch.ones(3))
    with pytest.raises(ValueError, match="every upstream gradient is None"):
        ADAPTER.gradients(scaled, inputs, ["x"], None)
    with pytest.raises(NotAnArrayError, match="output '0' is of type float"):
        ADAPTER.gradients(lambda x, y: 1.0, inputs, ["x"], torch.ones(2))
