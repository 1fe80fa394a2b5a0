import re
from pathlib import Path

import gpuemu

ROOT = Path(__file__).resolve().parents[2]


def version_in(file, section):
    # Python 3.10 has no reader of TOML.
    text = (ROOT / file).read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n[{section}]\n")
    found = re.search(r'^version = "([^"]+)"$', rest.partition("\n[")[0], re.MULTILINE)
    assert found, f"{file} has no version in [{section}]"
    return found.group(1)


def test_every_part_of_the_package_has_the_same_version():
    from gpuemu import _native

    version = version_in("Cargo.toml", "workspace.package")
    assert version_in("pyproject.toml", "project") == version
    assert gpuemu.__version__ == version
    assert version == _native.VERSION
