"""The HTML report in a real browser: real projects, the real program, Chromium."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pynng
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

#: Where screenshots are kept, to be looked at. Git ignores it.
SCREENSHOTS = Path(__file__).parents[2] / "target" / "screenshots"

#: The picture of docs/reports.md.
HEAT_MAP = Path(__file__).parents[2] / "docs" / "pictures" / "heat-map.png"

CONFIG = """
[project]
name = "three bugs"
framework = "numpy"

[validation]
seed = 5

[[ops]]
name = "tail"
op = "matmul"
module = "kernels:tail"
dtypes = ["float32"]

[[ops]]
name = "stride"
op = "matmul"
module = "kernels:stride"
dtypes = ["float32"]

[[ops]]
name = "scale"
op = "matmul"
module = "kernels:scale"
dtypes = ["float32"]
"""

KERNELS = '''
import numpy as np

TILE = 64


def matmul(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)


def tail(a, b):
    """The last, partial tile of columns is never stored."""
    output = matmul(a, b)
    columns = output.shape[-1]
    if columns > TILE:
        output[..., columns // TILE * TILE :] = 0
    return output


def stride(a, b):
    """Elements of b are read one after the other, whatever its strides."""
    return matmul(a, np.ravel(b, order="K").reshape(b.shape))


def scale(a, b):
    """A factor too much."""
    return (a.astype(np.float64) @ b.astype(np.float64) * 1.25).astype(a.dtype)
'''

#: How each op is run so that its bug shows.
SHAPES = ["--values", "regular", "--max-shape", "48,9,180"]
RUNS = {
    "tail": ["--layouts", "contiguous", *SHAPES],
    "stride": ["--layouts", "transposed", *SHAPES],
    "scale": ["--layouts", "contiguous", *SHAPES],
}


@dataclass
class Opened:
    """A page that was opened, and what it said and asked for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, file: Path) -> None:
        """Open a file and wait for all of it."""

        def said(message: ConsoleMessage) -> None:
            if message.type == "error":
                self.errors.append(message.text)

        def asked(request: Request) -> None:
            self.requests.append(request.url)

        self.page.on("console", said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", asked)
        self.page.goto(file.as_uri())
        self.page.wait_for_load_state("networkidle")

    def assert_quiet(self, file: Path) -> None:
        """Nothing went wrong, and nothing was loaded but the page."""
        assert self.errors == []
        assert self.requests == [file.as_uri()]


class Project:
    """A project with three wrong kernels, and gpuemu to look at it."""

    def __init__(self, folder: Path) -> None:
        """Write the files."""
        self.folder = folder
        self.home = folder / "home"
        (folder / "gpuemu.toml").write_text(CONFIG)
        (folder / "kernels.py").write_text(KERNELS)

    def gpuemu(self, *arguments: str, status: int) -> str:
        """Run gpuemu and return what it prints."""
        program = os.environ.get("GPUEMU_TEST_PROGRAM")
        assert program, "GPUEMU_TEST_PROGRAM is not set; run the tests by `cargo xtask test`"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUEMU_")}
        environment |= {"GPUEMU_HOME": str(self.home), "GPUEMU_PYTHON": sys.executable}
        environment["XDG_CONFIG_HOME"] = str(self.home)
        done = subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def page(self, op: str) -> Path:
        """Run one op and return the page on it."""
        file = self.folder / f"{op}.html"
        options = ["--iterations", "30", "--format", "html", "--output", str(file), "--no-daemon"]
        self.gpuemu("fuzz", "--op", op, *RUNS[op], *options, status=1)
        return file


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the project with three wrong kernels."""
    return Project(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def pages(project: Project) -> dict[str, Path]:
    """Return the page on each op."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return {op: project.page(op) for op in RUNS}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the system's Chromium."""
    program = os.environ.get("GPUEMU_TEST_BROWSER") or shutil.which("chromium")
    if not program:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no Chromium; run the tests by `cargo xtask test`")
        pytest.skip("there is no Chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Return an empty page of usual size."""
    context = browser.new_context(viewport={"width": 1200, "height": 1000}, color_scheme="light")
    yield Opened(context.new_page())
    context.close()


def levels(page: Page) -> tuple[list[str], int]:
    """Return the rows of cells of the first map, a digit each, and the columns that a cell stands for."""
    data = page.locator("svg.map").first
    width = int(data.get_attribute("data-width") or 0)
    text = data.get_attribute("data-levels") or ""
    assert width > 0
    assert len(text) % width == 0
    step = int((data.get_attribute("data-step") or "").split(",")[1])
    return [text[start : start + width] for start in range(0, len(text), width)], step


def is_wrong(level: str) -> bool:
    return level in "345678"


@pytest.mark.parametrize("op", RUNS)
def test_a_page_opens_without_a_complaint_and_shows_its_map(
    op: str, pages: dict[str, Path], opened: Opened
) -> None:
    opened.open(pages[op])
    opened.assert_quiet(pages[op])
    page = opened.page
    assert page.locator("h1").inner_text().startswith("Failed")
    for picture in ("svg.map", "svg.histogram", "svg.profile", "table.window", ".smallest", ".replay code"):
        assert page.locator(picture).first.is_visible(), picture
    assert page.locator("svg.history rect").count() == 1
    painted = page.locator("svg.map path").first.evaluate("path => getComputedStyle(path).fill")
    assert re.fullmatch(r"rgb\(.*\)", painted), "the style of the page is allowed by its policy"
    page.locator("details.card").first.screenshot(path=SCREENSHOTS / f"{op}-light.png")
    page.screenshot(path=SCREENSHOTS / f"{op}-page.png")


def test_the_three_bugs_look_different(pages: dict[str, Path], opened: Opened) -> None:
    maps = {}
    colours = {}
    for op, file in pages.items():
        opened.page.goto(file.as_uri())
        maps[op] = levels(opened.page)
        drawn = opened.page.locator("svg.ratios").first.locator("path")
        classes = drawn.evaluate_all("paths => paths.map(path => path.getAttribute('class'))")
        colours[op] = {name for name in classes if name.startswith("r")}
        if op == "tail":
            assert opened.page.locator("svg.map path.tile").first.is_visible()
            assert opened.page.locator("svg.map rect.tail").first.is_visible()
            assert "tiles of 64 along dim 1" in opened.page.locator("figcaption").first.inner_text()
            assert "fails at N=65, passes at N=64" in opened.page.locator(".smallest").first.inner_text()
    rows, step = maps["tail"]
    wrong = [any(is_wrong(row[column]) for row in rows) for column in range(len(rows[0]))]
    first = wrong.index(True)
    assert first * step % 64 == 0, "wrong from a tile's boundary on"
    assert all(wrong[first:]), "and only there"
    for op in ("stride", "scale"):
        rows, _ = maps[op]
        assert sum(is_wrong(level) for row in rows for level in row) > 0.6 * len(rows) * len(rows[0]), op
    # Nothing was stored, everything is 1.25 times too large, everything is something else.
    assert colours["tail"] == {"r2"}
    assert colours["scale"] == {"r5"}
    assert len(colours["stride"]) > 3


#: How far two pictures are from each other, on average, of 255; both are drawn in the size of the first.
DIFFERENCE = """async ([first, second]) => {
    const images = await Promise.all([first, second].map(async (data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        return image;
    }));
    const pixels = images.map((image) => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [images[0].width, images[0].height];
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        return context.getImageData(0, 0, canvas.width, canvas.height).data;
    });
    return pixels[0].reduce((sum, value, at) => sum + Math.abs(value - pixels[1][at]), 0) / pixels[0].length;
}"""


def test_the_readme_shows_the_map_of_a_real_report(pages: dict[str, Path], browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 1000}, device_scale_factor=1.5)
    page = context.new_page()
    page.goto(pages["tail"].as_uri())
    card = page.locator("details.card").first
    card.scroll_into_view_if_needed()
    whole = card.bounding_box()
    maps = page.locator("svg.map").first.bounding_box()
    assert whole and maps
    clip = {**whole, "height": maps["y"] + maps["height"] - whole["y"] + 8}
    drawn = page.screenshot(clip=clip)
    blank = page.screenshot(clip={**clip, "x": 0, "width": 8})
    context.close()
    if os.environ.get("GPUEMU_TEST_WRITE") == "1":
        HEAT_MAP.write_bytes(drawn)
    # Pages do not let scripts of others look into them.
    compared = browser.new_page()
    kept, drawn_now, empty = (base64.b64encode(one).decode() for one in (HEAT_MAP.read_bytes(), drawn, blank))
    # Fonts differ from machine to machine; the map does not.
    assert compared.evaluate(DIFFERENCE, [kept, drawn_now]) < 4
    assert compared.evaluate(DIFFERENCE, [kept, empty]) > 12
    compared.close()


def focused(page: Page) -> str:
    """Return the card whose summary has the focus, or nothing."""
    return str(
        page.evaluate(
            """() => {
                const here = document.activeElement;
                return here.matches("details.card > summary") ? here.parentElement.id : "";
            }"""
        )
    )


def test_the_keyboard_reaches_every_card(pages: dict[str, Path], opened: Opened) -> None:
    opened.open(pages["tail"])
    page = opened.page
    cards = page.locator("details.card").evaluate_all("cards => cards.map(card => card.id)")
    assert len(cards) > 2
    reached = []
    for _ in range(40 + 8 * len(cards)):
        page.keyboard.press("Tab")
        if card := focused(page):
            reached.append(card)
        if len(set(reached)) == len(cards):
            break
    assert reached == cards, "each once, in order"
    # A card opens by the keyboard.
    last = page.locator(f"#{cards[-1]}")
    assert last.get_attribute("open") is None
    page.keyboard.press("Enter")
    assert last.get_attribute("open") is not None
    assert last.locator(".replay").is_visible()
    page.keyboard.press("k")
    assert focused(page) == cards[-2]
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert focused(page) == cards[-1]
    page.locator("#filter").fill("no such op")
    assert page.locator("details.card").first.is_hidden()
    assert opened.errors == []


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour as browsers compute it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


CONTRAST = """selector => {
    const element = document.querySelector(selector);
    let ground = element;
    const painted = (one) => getComputedStyle(one).backgroundColor;
    while (painted(ground) === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
    return [getComputedStyle(element).color, painted(ground)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(scheme: str, pages: dict[str, Path], browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 1000}, color_scheme=scheme)
    opened = Opened(context.new_page())
    opened.open(pages["tail"])
    opened.assert_quiet(pages["tail"])
    ground = luminance(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (ground > 0.8) if scheme == "light" else (ground < 0.1)
    texts = ["h1", ".verdict", ".lead", ".muted", ".chip", ".kind", "figcaption", ".legend li", "dt"]
    texts += [".good-text", ".bad-text", ".window td.worst", ".replay code", "summary .extent", ".ops a"]
    for text in texts:
        ink, behind = (luminance(colour) for colour in opened.page.evaluate(CONTRAST, text))
        contrast = (max(ink, behind) + 0.05) / (min(ink, behind) + 0.05)
        assert contrast >= 4.5, f"{text} in {scheme}: {contrast:.2f}"
    opened.page.locator("details.card").first.screenshot(path=SCREENSHOTS / f"tail-{scheme}.png")
    context.close()


def test_a_narrow_window_shows_all_of_it(pages: dict[str, Path], browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(pages["scale"].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=SCREENSHOTS / "scale-narrow.png", full_page=True)
    context.close()


def test_nothing_needs_a_script(pages: dict[str, Path], browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = Opened(context.new_page())
    opened.open(pages["stride"])
    opened.assert_quiet(pages["stride"])
    page = opened.page
    assert page.locator("svg.map").first.is_visible()
    assert page.locator(".controls").is_hidden(), "what needs a script is not offered"
    card = page.locator("details.card").nth(1)
    card.locator("summary").click()
    assert card.locator(".replay code").is_visible()
    context.close()


def record(project: Project, ops: int, failures: int) -> None:
    """Let the daemon keep failures, as a client would that judged them itself."""
    hostile = "</details><script>document.title = 'taken over'</script>"
    finding = {"check": "value", "tensor": "out", "mismatched": 1, "elements": 2, "worst": None}
    finding |= {"bug_class": "formula", "explanation": f"1 of 2 elements differ {hostile}"}
    result = {"outcome": "failed", "passed": False, "dtype": "float32", "sizes": "N=2"}
    result |= {"shapes": [["x", [2]]]}
    result |= {"layout": "contiguous", "values": "regular", "parameters": "", "max_abs_diff": 1.0}
    result |= {"max_rel_diff": 1.0, "max_ulp_diff": 9, "tolerance_share": 3.0, "tolerance": "exact"}
    result |= {"elements": {"compared": 2, "mismatched": 1, "undetermined": 0, "excused": 0}}
    result |= {"failures": [finding], "runner": "callable", "not_checked": [], "case": {}, "time": 0}
    reference = {"root": str(project.folder), "config": str(project.folder / "gpuemu.toml")}
    project.gpuemu("daemon", "start", "--background", status=0)
    with pynng.Req0(dial=f"ipc://{project.home}/gpuemu.sock", recv_timeout=20_000) as socket:
        for op in range(ops):
            name = f"recorded_{op}"
            results = [
                result | {"op": name, "seed": str(seed), "replay": f"python check.py --seed {seed}"}
                for seed in range(failures)
            ]
            request = {"type": "RecordResults", "project": reference, "op_name": name, "base_seed": "1"}
            socket.send(json.dumps(request | {"results": results}).encode())
            answer = json.loads(socket.recv())
            assert answer["type"] == "Recorded", answer


def test_a_thousand_failures_open_in_seconds(tmp_path: Path, opened: Opened) -> None:
    project = Project(tmp_path)
    record(project, ops=20, failures=50)
    file = tmp_path / "many.html"
    try:
        project.gpuemu("report", "--format", "html", "--output", str(file), status=1)
    finally:
        project.gpuemu("daemon", "stop", status=0)
    assert file.stat().st_size < 5_000_000
    started = time.monotonic()
    opened.open(file)
    page = opened.page
    assert page.locator("details.card").count() == 1000
    page.keyboard.press("j")
    assert focused(page) == "failure-1"
    page.locator("details.card").last.scroll_into_view_if_needed()
    page.locator("details.card").last.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("details.card").last.locator(".replay code").is_visible()
    took = time.monotonic() - started
    print(f"{file.stat().st_size} bytes, read after {took:.1f} s")
    assert took < 10
    opened.assert_quiet(file)
    assert page.title() != "taken over"
    # What is scrolled away is not laid out, and has no inner text.
    note = page.locator("details.card").first.locator(".note").text_content() or ""
    assert note.startswith("No picture: it was found in a Python process")
