"""What a function does to memory: to its inputs, and to what it returned before.

The package watches functions of the caller's own process with it, and the worker, which is one text and
imports nothing of the package, functions of a project. So nothing of either is imported here.
"""

import sys
from typing import Any

# Calls whose storages are kept, so that those of the next ones lie elsewhere.
KEPT_CALLS = 3
# Beyond that only the storages of the last call are kept.
MOST_KEPT_BYTES = 1 << 26
# Longer blocks go back to the system when they are freed, and come back as zeros.
MOST_POISONED_BYTES = 1 << 25
# Bytes of the outputs of one call that are looked at again after the next ones.
MOST_WATCHED_BYTES = 1 << 24
# Calls whose outputs are: memory may be used in turns.
WATCHED_CALLS = 3
# On each side of an input: a store outside of it leaves a mark there. As in the engine's own buffers.
GUARD_BYTES = 256
GUARD = b"\xc3" * GUARD_BYTES


class WatchedMemory:
    """The memory of one function, from call to call."""

    def __init__(self, numpy: Any, shared: bool) -> None:
        """Watch memory of NumPy. `shared` says whether arrays lie in the storages that they are made of."""
        self.numpy, self.shared = numpy, shared
        self.forget()

    def forget(self) -> None:
        """Start anew, as if there had been no call."""
        self.kept: list[list[bytearray]] = []
        self.spare: list[list[bytearray]] = []
        self.guarded: list[tuple[bytearray, bytes]] = []
        self.returned: list[list[tuple[str, Any, bytes]]] = []

    def place(self, blobs: list[Any], refill: bool) -> list[Any]:
        """Return the storages of a call: where no recent call had any, or those of the last with new data."""
        if not self.shared:
            # Frameworks that copy may still look at storages that they were given before.
            return blobs
        # Copies, because to copy and to compare takes less time than two hashes.
        pristine = [b"".join((GUARD, blob, GUARD)) for blob in blobs]
        source = self.kept if refill and self.kept else self.spare
        if source and [len(storage) for storage in source[-1]] == [len(data) for data in pristine]:
            storages = source.pop()
            for storage, data in zip(storages, pristine, strict=True):
                memoryview(storage)[:] = data
        else:
            storages = [bytearray(data) for data in pristine]
        self.guarded = list(zip(storages, pristine, strict=True))
        self.kept.append(storages)
        while len(self.kept) > KEPT_CALLS or (len(self.kept) > 1 and self.kept_bytes() > MOST_KEPT_BYTES):
            # Not freed, because new pages take longer to get than these to fill.
            self.spare = [self.kept.pop(0)]
        return [memoryview(storage)[GUARD_BYTES:-GUARD_BYTES] for storage in storages]

    def kept_bytes(self) -> int:
        """Return how much memory is kept from being used again."""
        return sum(len(storage) for call in self.kept for storage in call)

    def poison(self, byte: int, lengths: list[int]) -> None:
        """Leave poison in memory that the next allocations of these lengths are likely to get.

        A function that returns memory without writing it would otherwise find there what an earlier call
        left: often the right result.
        """
        if not self.shared:
            return
        torch = sys.modules.get("torch")
        blocks = []
        for length in lengths:
            if length >= MOST_POISONED_BYTES:
                continue
            block = self.numpy.empty(length, "uint8")
            block.fill(byte)
            blocks.append(block)
            if torch is not None:
                # It aligns its memory otherwise, and so gets other blocks.
                blocks.append(torch.empty(length, dtype=torch.uint8).fill_(byte))

    def seen(
        self, inputs: list[tuple[str, Any]], outputs: list[tuple[str, Any, bytes]]
    ) -> list[dict[str, Any]]:
        """Return what the last call did to memory beside its inputs.

        Its inputs are names and storages, its outputs names, arrays, and the bytes of their elements.
        """
        if not self.shared:
            return []
        # Bytes compare in a tenth of the time that arrays of a few elements take.
        changed = {
            name for call in self.returned for name, array, before in call if array.tobytes() != before
        }
        found = [{"check": "output_overwritten", "output": name} for name in sorted(changed)]
        if changed:
            self.returned = []
        kept, left = [], MOST_WATCHED_BYTES
        for name, array, data in outputs:
            holders = [] if array.flags.owndata else self.holders(array, inputs)
            found += [{"check": "aliasing", "output": name, "input": holder} for holder in holders]
            left -= len(data)
            # What lies in an input changes when that is refilled.
            if left >= 0 and not holders:
                kept.append((name, array, data))
        self.returned = [*self.returned[1 - WATCHED_CALLS :], kept]
        return found

    def modified(self, views: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the inputs that changed, with the elements that did, and stores outside of them."""
        found: list[dict[str, Any]] = []
        for view, (storage, before) in zip(views, self.guarded, strict=False):
            if storage == before:
                continue
            changed = self.bytes_of(storage) != self.bytes_of(before)
            inside = changed[GUARD_BYTES:-GUARD_BYTES].reshape(-1, view["element_bytes"]).any(axis=1)
            if inside.any():
                elements, first = int(inside.sum()), int(inside.argmax())
                entry = {
                    "check": "input_modified",
                    "input": view["name"],
                    "elements": elements,
                    "first": first,
                }
                found.append(entry)
            ahead, behind = changed[GUARD_BYTES - 1 :: -1], changed[-GUARD_BYTES:]
            nearest = behind if behind.any() else ahead
            if nearest.any():
                entry = {"check": "out_of_bounds", "input": view["name"], "after": nearest is behind}
                entry |= {"distance": int(nearest.argmax()), "bytes": int(ahead.sum() + behind.sum())}
                found.append(entry)
        self.guarded = []
        return found

    def strays(self, returned: list[Any], storages: list[Any], keyword: str) -> str | None:
        """Return what is wrong with arrays that a function returned beside the memory it was given to write.

        It may return nothing, or what lies in that memory: another result would be one that nobody judged.
        """
        given = [self.bounds(self.bytes_of(storage)) for storage in storages]
        for array in returned:
            low, high = self.bounds(array)
            if array.size and not any(start <= low and high <= end for start, end in given):
                return f"took `{keyword}=` and returned another array; return that one, or nothing"
        return None

    @staticmethod
    def bounds(array: Any) -> tuple[int, int]:
        """Return the addresses between which the elements of an array lie."""
        low = high = array.__array_interface__["data"][0]
        for size, stride in zip(array.shape, array.strides, strict=True):
            if stride < 0:
                low += (size - 1) * stride
            else:
                high += (size - 1) * stride
        return low, high + array.itemsize

    @staticmethod
    def out_argument(arrays: list[Any]) -> Any:
        """Return the value of the argument that takes outputs: an array, or a tuple of several."""
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def holders(self, array: Any, inputs: list[tuple[str, Any]]) -> list[str]:
        """Return the inputs in whose memory an array lies."""
        share = self.numpy.may_share_memory
        return [
            name
            for name, storage in inputs
            if len(storage) and array.size and share(array, self.bytes_of(storage))
        ]

    def bytes_of(self, storage: Any) -> Any:
        """Return an array over a storage."""
        return self.numpy.frombuffer(storage, "uint8")

    @staticmethod
    def written_in_place(
        returned: list[tuple[str, Any]],
        outputs: list[str],
        placed: list[str],
        inputs: dict[str, Any],
        same: Any,
    ) -> list[tuple[str, Any]]:
        """Return the outputs of an op that writes over inputs: what these hold now, and what else came back.

        A function may return all outputs or only those that are not written in place.
        """
        others = [name for name in outputs if name not in placed]
        order = outputs if len(returned) == len(outputs) else others
        names = {str(place): name for place, name in enumerate(order)}
        names["output"] = names.get("0", "output")
        found = {names.get(label, label): value for label, value in returned}
        for name in placed:
            if name in found and not same(found[name], inputs[name]):
                raise ValueError(
                    f"'{name}' came back as another array than the input, which holds something else; the op "
                    "works in place: write its result into the input"
                )
            found[name] = inputs[name]
        return [(name, found[name]) for name in outputs if name in found]
