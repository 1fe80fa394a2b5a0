"""What a callable can be given, as its signature says.

The package and the worker share this file, as they share `watched_memory.py`: it imports nothing of either.
"""

import inspect
from collections import abc
from typing import Any


def written_function(function: abc.Callable[..., Any]) -> abc.Callable[..., Any]:
    """Return the function that a user wrote, from inside of what a framework made of it."""
    for attribute in ("python_function", "forward"):
        # TensorFlow keeps what `tf.function` was given; a module of PyTorch is called through `forward`.
        inner = getattr(function, attribute, None)
        if callable(inner):
            return inner  # type: ignore[no-any-return]
    return function


def accepted(function: abc.Callable[..., Any], shares_memory: bool = False) -> dict[str, Any]:
    """Describe what a function can be given, and whether its arrays lie in memory that it is given."""
    answer: dict[str, Any] = {
        "names": [],
        "any": False,
        "required": [],
        "any_positional": False,
        "shares_memory": shares_memory,
    }
    try:
        parameters = inspect.signature(written_function(function)).parameters.values()
    except (TypeError, ValueError):
        # Written in C, and silent about it: arguments can only be tried in order.
        answer["any_positional"] = True
        return answer
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            answer["names"].append(parameter.name)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if parameter.default is parameter.empty:
                answer["required"].append(parameter.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            answer["any"] = True
        elif parameter.kind is parameter.VAR_POSITIONAL:
            answer["any_positional"] = True
    return answer


def function_name(function: abc.Callable[..., Any]) -> str:
    """Return the name of a function, with its module where it has one."""
    inner = written_function(function)
    name = getattr(inner, "__qualname__", None) or getattr(inner, "__name__", None) or type(function).__name__
    module = getattr(inner, "__module__", None)
    # Ops of PyTorch name the compiler they were built with.
    plain = isinstance(module, str) and module != "__main__" and "pybind11" not in module
    return f"{module}.{name}" if plain else str(name)
