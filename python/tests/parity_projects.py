"""Projects whose ops are functions with known verdicts, each written or copied into an empty folder.

`lab/twins/runner`, which knows of pairs and examples, has to be on the search path.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import cheating_ops
from example_projects import EXAMPLES
from markdown_blocks import blocks_in

CHECKOUT = Path(__file__).resolve().parents[2]
RUNNER = CHECKOUT / "lab/twins/runner"
PAGE = CHECKOUT / "docs/guides/cheating-kernels.md"


def twins(folder: Path) -> Path:
    """Write the pairs in NumPy, those of the grown corpus too; an op is called by its pair and its side."""
    import grown
    from pair import own_pairs
    from project import write_project

    write_project([*own_pairs("numpy"), *grown.python_pairs()], folder)
    return folder


def right_example(folder: Path) -> Path:
    """Copy the example."""
    unwanted = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLES / "numpy", folder / "example", ignore=unwanted))


def wrong_example(folder: Path) -> Path:
    """Copy the example, and return the folder of its wrong twins."""
    return right_example(folder) / "wrong"


def cheats(folder: Path) -> Path:
    """Write the functions that `cheating_ops` knows, and those of the page about such functions."""
    from project import toml

    tables = [_page(folder)]
    sources = ("cheating_kernels", "own_op_kernels", "numpy_kernels", "float_environment_kernels")
    for source in sources:
        shutil.copy(Path(__file__).with_name(f"{source}.py"), folder)
    ops = dict(cheating_ops.OPS)
    for name in _functions(folder / "page.py"):
        ops[f"page_{name}"] = {"module": f"page:{name}", "op": "tanh"}
    for name, op in ops.items():
        lines = [f"{key} = {toml(value)}" for key, value in op.items()]
        tables.append("\n".join(["[[ops]]", f'name = "{name}"', *lines]))
    (folder / "gpuemu.toml").write_text("\n\n".join(tables) + "\n", encoding="utf-8")
    return folder


def _page(folder: Path) -> str:
    """Write the files of the page and, as a module, its cheats; return its configuration."""
    configuration = ""
    for block in blocks_in(PAGE.read_text(encoding="utf-8")):
        marks = block.marks or ""
        if 'title="gpuemu.toml"' in marks:
            configuration = block.text
        elif 'title="kernels.py"' in marks:
            (folder / "kernels.py").write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            program = ast.parse(block.text)
            # The loop is what checks them; without it nothing needs gpuemu, which workers need not have.
            lines = [line for line in program.body if not isinstance(line, ast.For)]
            program.body = [line for line in lines if ast.unparse(line) != "import gpuemu"]
            (folder / "page.py").write_text(ast.unparse(program), encoding="utf-8")
    return configuration


def _functions(source: Path) -> list[str]:
    """Return the names of a module's functions."""
    lines = ast.parse(source.read_text(encoding="utf-8")).body
    return [line.name for line in lines if isinstance(line, ast.FunctionDef)]
