"""Answers as frozen dataclasses that also index like the JSON objects that they were read from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from gpuemu.errors import ConnectionError

Some = TypeVar("Some", bound="Record")


class Record:
    """What every answer can do. Fields that a later version adds are passed over."""

    @classmethod
    def from_json(cls: type[Some], value: Mapping[str, Any]) -> Some:
        """Read it from the object of an answer."""
        read: dict[str, Any] = {}
        for item in dataclasses.fields(cls):  # type: ignore[arg-type]
            if item.name in value:
                reader = item.metadata.get("read")
                read[item.name] = value[item.name] if reader is None else reader(value[item.name])
        try:
            return cls(**read)
        except TypeError as error:
            message = f"the daemon's answer cannot be read: {error}"
            raise ConnectionError(message, code="Unreadable") from error

    def to_json(self) -> dict[str, Any]:
        """Return the object that it would be read from."""
        written: dict[str, Any] = {}
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if value is None and item.default is None:
                continue
            writer = item.metadata.get("write", plain)
            written[item.name] = None if value is None else writer(value)
        return written

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self:
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a field of that name."""
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        """Return the names of the fields, as a dict does."""
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return [item.name for item in dataclasses.fields(self)]  # type: ignore[arg-type]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field by its name, or something else where there is none of that name."""
        return getattr(self, name) if name in self else default


def plain(value: Any) -> Any:
    """Return a value as JSON can say it."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value - value != 0.0:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def whole_number(**options: Any) -> Any:
    """Declare a 64-bit number, which JSON has as a string."""
    read = _unless_none(int)
    return dataclasses.field(metadata={"read": read, "write": str}, **options)


def number(**options: Any) -> Any:
    """Declare a number that may be NaN or infinite, which JSON has as a string."""
    return dataclasses.field(metadata={"read": float}, **options)


def one(kind: type[Record], **options: Any) -> Any:
    """Declare an object."""
    return dataclasses.field(metadata={"read": _unless_none(kind.from_json)}, **options)


def many(kind: type[Record], **options: Any) -> Any:
    """Declare a list of objects."""

    def read(values: list[Any]) -> list[Any]:
        return [kind.from_json(value) for value in values]

    return dataclasses.field(metadata={"read": read}, **options)


def read_with(read: Callable[[Any], Any], **options: Any) -> Any:
    """Declare something that a function reads."""
    return dataclasses.field(metadata={"read": _unless_none(read)}, **options)


def _unless_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)
