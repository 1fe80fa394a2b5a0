"""Functions of a project: found, described, called and watched."""

import importlib
import inspect
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arrays import Arrays, LoadError
    from messages import Answer, Blobs, clean, traceback_text

    from gpuemu._launches.watched_kernel import WatchedKernel
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
        seen = []
        if watch:
            seen = self.memory.modified(views, blobs)
            names = [view["name"] for view in views]
            seen += self.memory.seen(list(zip(names, blobs, strict=True)), outputs)
        if watch and self.kernel:
            seen += self.kernel.seen(watch["output_bytes"])
        seen += self.launched(launches)
        return {"is": "returned", "outputs": described, "seen": seen}, [data for _, _, data in outputs]

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
