"""The files that were loaded from a project, and whether they have changed since."""

import os
import sys
import sysconfig
import time

# The longest time between two ticks of the clock that files are stamped by.
TICK_NS = 20_000_000


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
