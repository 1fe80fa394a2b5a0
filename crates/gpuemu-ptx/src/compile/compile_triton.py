"""Compiles one Triton kernel to PTX, without a GPU.

The answer has the PTX and what only the compiler knows, or an error in words. `answered.py` is started
in front of this file.
"""

import difflib
import json
import linecache
import os
import sys
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from answered import answer, own_traceback, refuse

SCALARS = ["i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64"]
NARROW_FLOATS = ["fp8e4nv", "fp8e5", "fp8e4b8", "fp8e4b15", "fp8e5b16"]


def hint(name: str, known: Iterable[str]) -> str:
    """Say which name may be meant, or which there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; there are: {', '.join(names)}" if names else ""


def load_module(name: str, root: str) -> types.ModuleType:
    """Run a file as a module."""
    path = os.path.join(root, name)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    sys.path[:0] = [os.path.dirname(path), root]
    module = types.ModuleType(os.path.splitext(os.path.basename(name))[0])
    module.__file__ = path
    # Not under its own name, which may be that of a module that it imports.
    sys.modules["__gpuemu_kernels__"] = module
    module.__name__ = "__gpuemu_kernels__"
    # The code knows the name as it was written, and so will the PTX: no folder of this machine is in it.
    # Triton reads a kernel's source by that name.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(compile(source, name, "exec"), module.__dict__)
    except BaseException as error:
        refuse(f"{name} cannot be imported:\n{own_traceback(error)}")
    finally:
        os.chdir(root)
    return module


def find_kernel(module: types.ModuleType, name: str, file: str) -> Any:
    """Find the function below autotune and heuristics."""
    from triton.runtime.jit import JITFunction

    def unwrapped(value: Any) -> Any:
        for _ in range(16):
            if isinstance(value, JITFunction) or not hasattr(value, "fn"):
                break
            value = value.fn
        return value if isinstance(value, JITFunction) else None

    if not hasattr(module, name):
        kernels = [known for known, value in vars(module).items() if unwrapped(value) is not None]
        refuse(f"{file} has no kernel '{name}'{hint(name, kernels)}")
    kernel = unwrapped(getattr(module, name))
    if kernel is None:
        refuse(f"'{name}' of {file} is not a Triton kernel; it needs the decorator @triton.jit")
    return kernel


def constant(name: str, value: Any) -> Any:
    """A constant as Triton takes it."""
    if value is None:
        refuse(f'the constant \'{name}\' is not finite; write "float:inf", "float:-inf" or "float:nan"')
    if isinstance(value, str) and value.startswith("float:"):
        try:
            return float(value[len("float:") :])
        except ValueError:
            refuse(f"the constant '{name}' is not a number: \"{value}\"")
    if isinstance(value, str) and value.startswith("type:"):
        import triton.language as tl

        dtype = getattr(tl, value[len("type:") :], None)
        if not isinstance(dtype, tl.dtype):
            refuse(f'the constant \'{name}\' is no type of triton.language, as in "type:float32": "{value}"')
        return dtype
    if not isinstance(value, (bool, int, float, str)):
        refuse(f"the constant '{name}' is neither a number nor a boolean nor a string: {json.dumps(value)}")
    return value


def constants_of(kernel: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Every constant of the kernel: those that are given, and defaults."""
    parameters = {parameter.name: parameter for parameter in kernel.params}
    for name in given:
        if name not in parameters:
            refuse(f"the kernel '{kernel.__name__}' has no argument '{name}'{hint(name, parameters)}")
    constants = {name: constant(name, value) for name, value in given.items()}
    for name, parameter in parameters.items():
        if parameter.is_constexpr and name not in constants:
            if not parameter.has_default:
                refuse(f"the tl.constexpr argument '{name}' has no value; give it one in compile.constants")
            constants[name] = parameter.default
    return constants


def signature_of(kernel: Any, constants: dict[str, Any], types: list[str]) -> dict[str, str]:
    """The type of every argument."""
    runtime = [name for name in kernel.arg_names if name not in constants]
    if len(types) != len(runtime):
        refuse(
            f"the kernel '{kernel.__name__}' has {len(runtime)} arguments that are not constants"
            f" ({', '.join(runtime)}), and compile.signature has {len(types)} types ({', '.join(types)})"
        )
    for name, kind in zip(runtime, types, strict=True):
        element = kind.lstrip("*").removeprefix("k")
        if element not in SCALARS + NARROW_FLOATS and not kind.startswith(("tensordesc", "nvTmaDesc")):
            near = difflib.get_close_matches(element, SCALARS, n=1)
            meant = f"; did you mean '{kind.replace(element, near[0])}'?" if near else ""
            refuse(f"the type '{kind}' of '{name}' is not one of Triton, as in '*fp32' or 'i32'{meant}")
    given = dict(zip(runtime, types, strict=True))
    return {name: given.get(name, "constexpr") for name in kernel.arg_names}


def attributes_of(kernel: Any, signature: dict[str, str], divisible: list[str] | None) -> dict[Any, Any]:
    """Which arguments are known to be divisible by 16."""
    runtime = [name for name, kind in signature.items() if kind != "constexpr"]
    if divisible is None:
        divisible = [name for name in runtime if signature[name].startswith("*")]
    for name in divisible:
        if name not in runtime:
            refuse(
                f"compile.divisible_by_16 has '{name}', which is no argument with a type{hint(name, runtime)}"
            )
    return {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in divisible}


def compile_kernel(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked."""
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        return {
            "no_compiler": f"Triton is not installed in {sys.executable}; `pip install triton` installs it"
        }
    release = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if release < (3, 3):
        return {"no_compiler": f"Triton {triton.__version__} is too old; 3.3 or newer is needed"}
    kernel = find_kernel(load_module(request["file"], request["root"]), request["kernel"], request["file"])
    constants = constants_of(kernel, request["constants"])
    signature = signature_of(kernel, constants, request["signature"])
    attributes = attributes_of(kernel, signature, request["divisible_by_16"])
    options = {name: request[name] for name in ("num_warps", "num_stages") if request[name] is not None}
    source = ASTSource(kernel, signature, constants, attributes)
    try:
        compiled = triton.compile(source, target=GPUTarget("cuda", request["target"], 32), options=options)
    except Exception as error:
        # An error in the kernel is told with its line, and a long way through the compiler before it.
        known = type(error).__module__.startswith("triton.")
        refuse(str(error).strip() if known else own_traceback(error))
    metadata = compiled.metadata
    return {
        "ptx": compiled.asm["ptx"],
        "producer": f"Triton {triton.__version__}",
        "shared_bytes": int(metadata.shared),
        "block_threads": int(metadata.num_warps) * 32,
    }


answer(compile_kernel)
