"""Functions of a project: found, described, called and watched."""

import importlib
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arrays import Arrays, LoadError
    from float_environment import float_environment
    from messages import Answer, Blobs, clean, traceback_text

    from gpuemu._launches.watched_kernel import WatchedKernel
    from gpuemu._runs.signature import accepted
    from gpuemu._runs.watched_memory import WatchedMemory


def witnessed_launches() -> AbstractContextManager[list[str]]:
    """Take what kernels do in the PTX machine, where the project's code launches them there.

    The worker itself imports nothing of gpuemu: it may be another version, or not be there.
    """
    emulation = sys.modules.get("gpuemu.emulation")
    witnessed = getattr(emulation, "witnessed", None)
    return nullcontext([]) if witnessed is None else witnessed()


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
        # What importing it changed holds for all calls.
        self.float_environment = float_environment()

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
        return {"is": "accepts", **accepted(self.function, self.arrays.share_storages)}

    def run(self, request: dict[str, Any], blobs: Blobs) -> Answer:
        """Call the function. A call that is watched must return exact arrays, and what it did is reported."""
        views, outs, watch = request["inputs"], request["outs"], request["watch"]
        blobs, memories = blobs[: len(views)], blobs[len(views) :]
        self.arrays.prepare(views)
        make = self.arrays.make
        if watch:
            blobs = self.memory.place(blobs, watch["refill"])
        inputs = {view["name"]: make(view, blob) for view, blob in zip(views, blobs, strict=True)}
        keywords = request["parameters"]
        if outs:
            made = [make(view, memory) for view, memory in zip(outs, memories, strict=True)]
            keywords[watch["out"]] = self.memory.out_argument(made)
        if watch:
            self.memory.poison(watch["poison"], watch["output_bytes"])
        if self.kernel:
            self.kernel.forget()
        with witnessed_launches() as launches:
            try:
                if request["style"] == "keywords":
                    result = self.function(**inputs, **keywords)
                elif request["style"] == "dictionary":
                    result = self.function(inputs, **keywords)
                else:
                    result = self.function(*inputs.values(), **keywords)
            except BaseException as error:
                text = traceback_text(error)
                if not any(json.loads(launch)["findings"] for launch in launches):
                    return {"is": "raised", "text": text}, []
                # What the machine saw tells more than what became of it.
                return {"is": "returned", "outputs": [], "seen": self.launched(launches), "raised": text}, []
        if outs:
            return self.written(result, request, blobs, memories, launches)
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
        seen = self.seen(request, blobs, outputs) if watch else []
        seen += self.launched(launches)
        return {"is": "returned", "outputs": described, "seen": seen}, [data for _, _, data in outputs]

    def written(
        self, result: Any, request: dict[str, Any], blobs: Blobs, memories: Blobs, launches: list[str]
    ) -> Answer:
        """Answer with the memory that the function was given for its outputs, as it left it."""
        try:
            returned = [] if result is None else self.named(result, exact=True)
            for name, value in returned:
                if not self.arrays.is_exact(value):
                    self.arrays.refuse(name, value)
            arrays = [self.arrays.to_numpy(name, value)[1] for name, value in returned]
        except Exception as error:
            return {"is": "no_array", "text": clean(f"its result cannot be read: {error}")}, []
        strays = self.memory.strays(arrays, memories, request["watch"]["out"])
        if strays is not None:
            return {"is": "no_array", "text": f"it {strays}"}, []
        # Nothing of the function's own came back.
        seen = self.seen(request, blobs, []) + self.launched(launches)
        return {"is": "returned", "outputs": [], "seen": seen}, memories

    def seen(
        self, request: dict[str, Any], blobs: Blobs, outputs: list[tuple[str, Any, bytes]]
    ) -> list[dict[str, Any]]:
        """Return what the call did to memory, and whether it did without its kernel."""
        views = request["inputs"]
        seen = self.memory.modified(views)
        names = [view["name"] for view in views]
        seen += self.memory.seen(list(zip(names, blobs, strict=True)), outputs)
        if self.kernel:
            seen += self.kernel.seen(request["watch"]["output_bytes"])
        left = float_environment()
        if left != self.float_environment:
            seen.append({"check": "float_environment", "differences": left})
        return seen

    @staticmethod
    def launched(launches: list[str]) -> list[dict[str, Any]]:
        """Return launches in the PTX machine as things that were seen."""
        return [{"check": "launch", **json.loads(launch)} for launch in launches]

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
