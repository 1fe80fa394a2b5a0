"""Answers requests, one after the other, until the other side is gone.

Arguments: the project's root, the memory limit in bytes (0 for none), and the most bytes a script may print.

A request and an answer are frames: a magic, the length of a JSON header, the header, and the blobs whose
lengths it lists. They travel on what were standard input and output.

The daemon starts this file, `watched_memory.py` and `watched_kernel.py` as one program, which ends by calling
`main`.
"""
# ruff: noqa: E402

import sys

# `-c` puts the working folder first: a file of the project must not stand in for a module used here.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import builtins
import contextlib
import errno
import faulthandler
import importlib
import inspect
import io
import json
import os
import signal
import struct
import sysconfig
import time
import traceback
import types
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from watched_kernel import WatchedKernel
    from watched_memory import WatchedMemory

MAGIC = b"gpe1"
# Whoever changed the attributes of these modules changed them for themselves alone.
ENCODE = json.JSONEncoder().encode
DECODE = json.JSONDecoder().decode
# The longest time between two ticks of the clock that files are stamped by.
TICK_NS = 20_000_000
MOST_TRACEBACK = 1 << 16

Blobs = list[Any]
Answer = tuple[dict[str, Any], Blobs]


def limit_memory(limit: int) -> None:
    """Bound the address space, where the system can."""
    if limit == 0:
        return
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def clean(text: str) -> str:
    """Return the end of a text, without what cannot be sent."""
    return text[-MOST_TRACEBACK:].encode("utf-8", "replace").decode("utf-8")


def traceback_text(error: BaseException) -> str:
    """Format an exception without the frames of this file and of the import system."""
    frames = error.__traceback__
    own = ("<string>", "<frozen importlib", importlib.__file__)
    while frames and frames.tb_frame.f_code.co_filename.startswith(own):
        frames = frames.tb_next
    return clean("".join(traceback.format_exception(type(error), error, frames)))


class Channel:
    """The two directions of the connection, out of reach of whoever prints or reads."""

    def __init__(self) -> None:
        """Take over standard input and output."""
        incoming, outgoing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.requests = io.BufferedReader(io.FileIO(incoming, "rb"), 1 << 16)
        self.answers = io.BufferedWriter(io.FileIO(outgoing, "wb"), 1 << 16)

        held = [incoming, outgoing]

        def forget() -> None:
            while held:
                os.close(held.pop())

        # A child that lives on must not keep the connection open.
        os.register_at_fork(after_in_child=forget)

    def receive(self) -> tuple[dict[str, Any], Blobs] | None:
        """Read one request, or nothing at the end."""
        start = self.requests.read(8)
        if len(start) < 8:
            return None
        magic, length = struct.unpack("<4sI", start)
        if magic != MAGIC:
            return None
        header = DECODE(self.requests.read(length).decode("utf-8"))
        blobs = []
        for size in header["blobs"]:
            blob = bytearray(size)
            if self.requests.readinto(blob) != size:
                return None
            blobs.append(blob)
        return header, blobs

    def send(self, header: dict[str, Any], blobs: Blobs) -> None:
        """Write one answer."""
        header["blobs"] = [len(blob) for blob in blobs]
        text = ENCODE(header).encode("ascii")
        self.answers.write(struct.pack("<4sI", MAGIC, len(text)) + text)
        for blob in blobs:
            self.answers.write(blob)
        self.answers.flush()


class LoadedFiles:
    """The files that were loaded from the project, as they were then."""

    def __init__(self, folders: set[str]) -> None:
        """Watch files below some folders, and all others that do not belong to the installation."""
        self.prefixes = tuple(os.path.join(folder, "") for folder in folders)
        installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        installed |= {os.path.realpath(folder) for folder in installed if folder}
        self.installed = tuple(os.path.join(folder, "") for folder in installed if folder)
        self.signatures: dict[str, tuple[int, int] | None] = {}
        self.modules: list[str] = []

    @staticmethod
    def signature(path: str) -> tuple[int, int] | None:
        """Return what changes when a file does."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def add(self, path: str, since: int) -> None:
        """Note a file that was read after a time.

        One that was written about then or later may have been written after it was read, so it counts as
        changed.
        """
        found = self.signature(path)
        self.signatures[path] = found if found and found[0] < since - TICK_NS else None

    def add_modules(self, since: int) -> None:
        """Note the files of modules that were imported after a time."""
        modules = list(sys.modules)
        if modules == self.modules:
            # As after almost every call. To look at all of them takes longer than a small call does.
            return
        self.modules = modules
        for module in list(sys.modules.values()):
            try:
                path = vars(module).get("__file__")
            except Exception:
                continue
            if isinstance(path, str) and path not in self.signatures and self.watches(path):
                self.add(path, since)

    def watches(self, path: str) -> bool:
        """Whether a file is the user's: of the project, or of a package that is worked on elsewhere."""
        return path.startswith(self.prefixes) or (os.path.isabs(path) and not path.startswith(self.installed))

    def changed(self) -> str | None:
        """Return a file that is not what was loaded."""
        self.add_modules(time.time_ns())
        for path, signature in self.signatures.items():
            if signature is None or self.signature(path) != signature:
                return path
        return None


class Capture(io.BytesIO):
    """What a script prints, up to a limit."""

    def __init__(self, limit: int) -> None:
        """Start with nothing."""
        super().__init__()
        self.left = limit
        self.exceeded = False

    def write(self, data: Any) -> int:
        """Keep what is written."""
        written = super().write(data)
        self.left -= written
        if self.left < 0:
            self.exceeded = True
            self.truncate(0)
            raise OSError(errno.EFBIG, "more was printed to stdout than is allowed")
        return written

    def close(self) -> None:
        """Keep the bytes: what was printed before stdout was closed counts."""


class Script:
    """A script that is run again and again, each time as a main module of its own."""

    def __init__(self, path: str, root: str, limit: int) -> None:
        """Compile it."""
        with open(path, "rb") as file:
            source = file.read()
        self.code = compile(source, path, "exec", dont_inherit=True)
        self.path, self.root, self.limit = path, root, limit
        self.main = sys.modules["__main__"]
        self.streams = sys.stdin, sys.stdout, sys.stderr
        self.search = list(sys.path)
        self.environment = os.environ.copy()

    def run(self, document: bytearray) -> Answer:
        """Run it with a request document; what it prints is the answer."""
        os.chdir(self.root)
        module = types.ModuleType("__main__")
        module.__file__ = self.path
        module.__builtins__ = builtins
        sys.modules["__main__"] = module
        sys.argv = [self.path]
        capture = Capture(self.limit)
        # As in a process started with `-u`: text is not held back.
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(capture, encoding="utf-8", write_through=True)
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BytesIO(document), encoding="utf-8")
        answer: dict[str, Any] = {"is": "printed"}
        try:
            exec(self.code, module.__dict__)
        except SystemExit as end:
            if status := self.status(end.code):
                answer = {"is": "exited", "status": status}
        except BaseException as error:
            answer = {"is": "raised", "text": traceback_text(error)}
        finally:
            self.restore()
            # The functions of the module and the module hold each other, and the arrays of the run.
            module.__dict__.clear()
        if capture.exceeded:
            return {"is": "too_large"}, []
        return answer, [capture.getbuffer()] if answer["is"] == "printed" else []

    def status(self, code: object) -> int:
        """Return the exit status that Python gives for an argument of `sys.exit`."""
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        print(code, file=self.streams[2], flush=True)
        return 1

    def restore(self) -> None:
        """Undo what a run may have changed for the next one."""
        sys.modules["__main__"] = self.main
        sys.stdin, sys.stdout, sys.stderr = self.streams
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = self.streams
        sys.path[:] = self.search
        if os.environ != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)


class LoadError(Exception):
    """A callable that cannot be had, and why."""


class Arrays:
    """The arrays of a framework."""

    def __init__(self, framework: str) -> None:
        """Import the framework."""
        self.numpy = self.load("numpy", "NumPy is needed to hand over arrays")
        package = {"pytorch": "torch", "jax": "jax", "tensorflow": "tensorflow"}.get(framework)
        self.make = self.from_numpy
        # JAX and TensorFlow copy, or take over what nobody may change.
        self.share_storages = package in (None, "torch")
        self.jax_numpy: Any = None
        self.dtypes: dict[str, Any] = {}
        if package:
            self.framework = self.load(package, f"the project's framework is {framework}")
            self.make = getattr(self, f"for_{package}")
        if package == "jax":
            self.jax_numpy = importlib.import_module("jax.numpy")

    @staticmethod
    def load(package: str, why: str) -> Any:
        """Import a package that cannot be done without."""
        try:
            return importlib.import_module(package)
        except Exception as error:
            hint = "install it there"
            if package != "numpy":
                hint = 'set framework = "numpy" in [project] if the op works on NumPy arrays'
            raise LoadError(
                f"{why}, but {package} cannot be imported by {sys.executable}: {error}; {hint}"
            ) from None

    def dtype(self, name: str) -> Any:
        """Return NumPy's dtype of a name."""
        try:
            return self.dtypes[name]
        except KeyError:
            pass
        try:
            found = self.dtypes[name] = self.numpy.dtype(name)
        except TypeError:
            raise TypeError(
                f"NumPy knows the dtype {name} only with the package ml_dtypes, which {sys.executable} lacks"
            ) from None
        return found

    def from_numpy(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return a view with real strides over the whole storage."""
        dtype, shape = self.dtype(view["dtype"]), view["shape"]
        if 0 in shape:
            return self.numpy.empty(shape, dtype)
        size = dtype.itemsize
        strides = [stride * size for stride in view["strides"]]
        return self.numpy.ndarray(shape, dtype, storage, view["offset"] * size, strides)

    def for_torch(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return a tensor over the whole storage."""
        torch, shape, strides = self.framework, view["shape"], view["strides"]
        dtype = getattr(torch, view["dtype"])
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        if any(stride < 0 for stride in strides):
            # Tensors cannot run backwards.
            storage = bytearray(self.from_numpy(view, storage).tobytes())
            return torch.frombuffer(storage, dtype=dtype).view(shape)
        return torch.frombuffer(storage, dtype=dtype).as_strided(shape, strides, view["offset"])

    def prepare(self, views: list[dict[str, Any]]) -> None:
        """Let JAX have 64-bit numbers where the inputs have some, and only there.

        Elsewhere numbers without a dtype of their own have 32 bits, as where the function is really used.
        """
        if self.jax_numpy is None:
            return
        floats = [view["dtype"] for view in views if "float" in view["dtype"]]
        wide = "float64" in floats or (not floats and any(view["dtype"].endswith("64") for view in views))
        if bool(self.framework.config.jax_enable_x64) != wide:
            self.framework.config.update("jax_enable_x64", wide)

    def for_jax(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return an array; JAX has no strides."""
        return self.jax_numpy.asarray(self.from_numpy(view, storage))

    def for_tensorflow(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return a tensor; TensorFlow has no strides."""
        return self.framework.constant(self.from_numpy(view, storage))

    def is_exact(self, value: Any) -> bool:
        """Whether a value is an array by its type alone, and computes nothing when it is looked at."""
        numpy, kind = self.numpy, type(value)
        if kind is numpy.ndarray:
            return True
        if isinstance(value, numpy.generic):
            # What NumPy returns where no dimension is left. A class of the user's own has another type there.
            return numpy.dtype(kind).type is kind
        torch = sys.modules.get("torch")
        if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
            return True
        package = kind.__module__.partition(".")[0]
        if package in ("jax", "jaxlib"):
            return isinstance(value, getattr(sys.modules.get("jax"), "Array", ()))
        if package == "tensorflow" and (tensorflow := sys.modules.get("tensorflow")):
            return isinstance(value, (tensorflow.Tensor, tensorflow.Variable))
        return False

    def refuse(self, name: str, value: Any) -> NoReturn:
        """Refuse something that was returned in place of an array."""
        kind = type(value)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        text = f"output '{name}' is of type {module}{kind.__qualname__}"
        if isinstance(value, self.numpy.ndarray):
            text += ", a subclass of numpy.ndarray; return numpy.array(...) of it"
        else:
            text += ", which is no array"
        if isinstance(value, list):
            text += "; return an array, or a tuple or dict of arrays"
        raise TypeError(text)

    def to_numpy(self, name: str, value: Any) -> tuple[str, Any]:
        """Return the dtype of a result and an array of its elements, in the result's memory if possible."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            tensor = value.detach().cpu().resolve_conj().resolve_neg()
            dtype = str(tensor.dtype).removeprefix("torch.")
            if dtype == "bfloat16" or dtype.startswith("float8"):
                tensor = tensor.view(torch.int16 if dtype == "bfloat16" else torch.uint8)
            return dtype, tensor.numpy()
        array = self.numpy.asarray(value)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        if array.dtype.hasobject or array.dtype.kind in "USmM":
            raise TypeError(f"output '{name}' is of type {type(value).__name__}, not an array of numbers")
        return array.dtype.name, array


class Callable:
    """A function of the project."""

    def __init__(self, target: str, op: str, framework: str, launches: str | None) -> None:
        """Find it, and watch what its calls have to run."""
        self.arrays = Arrays(framework)
        module_name, _, name = target.partition(":")
        module = self.module(module_name)
        self.kernel: WatchedKernel | None = None
        if launches:
            kernel_module, _, kernel_name = launches.partition(":")
            self.kernel = WatchedKernel(self.kernel_of(self.module(kernel_module), kernel_name))
            self.kernel.put_in_place()
        self.function = self.find(module, [name] if name else [op, "run"])
        self.memory = WatchedMemory(self.arrays.numpy, self.arrays.share_storages)

    @staticmethod
    def module(name: str) -> Any:
        """Import the module."""
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(error.name + ".")):
                places = ", ".join(sys.path[:1])
                raise LoadError(
                    f"there is no module '{error.name}' in {places} or among the packages of {sys.executable}"
                ) from None
            raise LoadError(f"importing it failed:\n{traceback_text(error)}") from None
        except BaseException as error:
            raise LoadError(f"importing it failed:\n{traceback_text(error)}") from None

    @staticmethod
    def kernel_of(module: Any, name: str) -> Any:
        """Return what `launches` names."""
        found = vars(module).get(name)
        if not callable(found) and not hasattr(found, "__getitem__"):
            raise LoadError(
                f"`launches` names '{name}', but module '{module.__name__}' has no function of that name"
            )
        return found

    @staticmethod
    def find(module: Any, names: list[str]) -> Any:
        """Return the first function of these names."""
        for name in names:
            found = module
            for part in name.split("."):
                found = getattr(found, part, None)
            if callable(found):
                return found
        public = {
            name: value
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_")
        }
        here = (None, module.__name__)
        own = [name for name, value in public.items() if getattr(value, "__module__", None) in here]
        wanted = " or ".join(f"'{name}'" for name in names)
        known = ", ".join(own or public) or "none"
        raise LoadError(f"module '{module.__name__}' has no function {wanted}; its public callables: {known}")

    def accepted(self) -> dict[str, Any]:
        """Describe what the function can be given."""
        answer: dict[str, Any] = {
            "is": "accepts",
            "names": [],
            "any": False,
            "required": [],
            "any_positional": False,
        }
        try:
            parameters = inspect.signature(self.function).parameters.values()
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

    def run(self, request: dict[str, Any], blobs: Blobs) -> Answer:
        """Call the function. A call that is watched must return exact arrays, and what it did is reported."""
        views, watch = request["inputs"], request["watch"]
        self.arrays.prepare(views)
        make = self.arrays.make
        if watch:
            blobs = self.memory.place(blobs, watch["refill"])
        inputs = {view["name"]: make(view, blob) for view, blob in zip(views, blobs, strict=True)}
        keywords = request["parameters"]
        if watch:
            self.memory.poison(watch["poison"], watch["output_bytes"])
        if self.kernel:
            self.kernel.forget()
        try:
            if request["style"] == "keywords":
                result = self.function(**inputs, **keywords)
            elif request["style"] == "dictionary":
                result = self.function(inputs, **keywords)
            else:
                result = self.function(*inputs.values(), **keywords)
        except BaseException as error:
            return {"is": "raised", "text": traceback_text(error)}, []
        placed = watch["in_place"] if watch and self.memory.shared else []
        if result is None and (not placed or set(placed) != set(watch["outputs"])):
            return {"is": "no_array", "text": "it returned None, not an array or arrays"}, []
        outputs, described = [], []
        try:
            named = [] if result is None else self.named(result, exact=bool(watch))
            if placed:
                named = self.memory.written_in_place(named, watch["outputs"], placed, inputs, self.same)
            for name, value in named:
                if watch and not self.arrays.is_exact(value):
                    self.arrays.refuse(name, value)
                dtype, array = self.arrays.to_numpy(name, value)
                outputs.append((name, array, array.tobytes()))
                described.append({"name": name, "dtype": dtype, "shape": list(array.shape)})
        except Exception as error:
            return {"is": "no_array", "text": clean(f"its result cannot be read: {error}")}, []
        seen = self.memory.seen(views, blobs, outputs) if watch else []
        if watch and self.kernel:
            seen += self.kernel.seen(watch["output_bytes"])
        return {"is": "returned", "outputs": described, "seen": seen}, [data for _, _, data in outputs]

    def same(self, returned: Any, array: Any) -> bool:
        """Whether two arrays hold the same bytes."""
        left, right = (self.arrays.to_numpy("output", value)[1] for value in (returned, array))
        return bool(left.shape == right.shape and left.tobytes() == right.tobytes())

    @staticmethod
    def named(result: Any, exact: bool) -> list[tuple[str, Any]]:
        """Return the outputs with their names, or their places where they have none."""
        if isinstance(result, dict):
            return [(str(name), value) for name, value in result.items()]
        if isinstance(result, tuple) or (isinstance(result, list) and not exact):
            return [(str(index), value) for index, value in enumerate(result)]
        return [("output", result)]


class Worker:
    """What was loaded, and what can be asked of it."""

    def __init__(self, root: str, limit: int) -> None:
        """Start with nothing loaded."""
        self.root, self.limit = root, limit
        self.files = LoadedFiles({root, os.path.realpath(root)})
        self.script: Script | None = None
        self.callable: Callable | None = None

    def answer(self, request: dict[str, Any], blobs: Blobs) -> Answer:
        """Do what is asked."""
        since = time.time_ns()
        answer: Answer
        if request["do"] == "run_script" and self.script:
            answer = self.script.run(blobs[0])
        elif request["do"] == "run_callable" and self.callable:
            answer = self.callable.run(request, blobs)
        elif request["do"] == "load_script":
            answer = self.load_script(os.fsdecode(bytes(blobs[0])), since)
        elif request["do"] == "load_callable":
            answer = self.load_callable(request)
        elif request["do"] == "stale":
            if self.callable:
                # Whoever asks is about to make calls that have nothing to do with the ones before.
                self.callable.memory.forget()
            answer = {"is": "stale", "changed": self.files.changed()}, []
        elif request["do"] == "mark":
            os.write(2, request["mark"].encode("ascii"))
            answer = {"is": "marked"}, []
        else:
            answer = {"is": "raised", "text": f"the worker cannot do {request['do']!r}"}, []
        self.files.add_modules(since)
        return answer

    def load_script(self, path: str, since: int) -> Answer:
        """Make a script ready to run."""
        folder = os.path.dirname(path)
        sys.path[:0] = [folder] if folder == self.root else [folder, self.root]
        self.files = LoadedFiles({self.root, os.path.realpath(self.root), folder, os.path.realpath(folder)})
        self.files.add(path, since)
        try:
            self.script = Script(path, self.root, self.limit)
        except BaseException as error:
            return {"is": "raised", "text": traceback_text(error)}, []
        return {"is": "loaded"}, []

    def load_callable(self, request: dict[str, Any]) -> Answer:
        """Make a function ready to be called."""
        sys.path.insert(0, self.root)
        try:
            self.callable = Callable(
                request["target"], request["op"], request["framework"], request["launches"]
            )
        except LoadError as error:
            return {"is": "not_loaded", "text": clean(str(error))}, []
        return self.callable.accepted(), []


def end() -> NoReturn:
    """Leave, with all processes that were started here."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def main() -> None:
    """Answer until nobody asks."""
    root, memory, limit = sys.argv[1:]
    del sys.argv[1:]
    channel = Channel()
    limit_memory(int(memory))
    faulthandler.enable()
    # NumPy knows bfloat16 and fp8 by name once it is imported.
    with contextlib.suppress(Exception):
        importlib.import_module("ml_dtypes")
    worker, process = Worker(root, int(limit)), os.getpid()
    while True:
        received = channel.receive()
        if received is None:
            end()
        try:
            header, blobs = worker.answer(*received)
        except BaseException as error:
            header, blobs = {"is": "raised", "text": traceback_text(error)}, []
        del received
        if os.getpid() != process:
            # A child that a script forked came back from it: it is not the worker.
            if header["is"] == "raised":
                os.write(2, header["text"].encode("utf-8"))
            os._exit(header.get("status", 1 if header["is"] == "raised" else 0))
        channel.send(header, blobs)
