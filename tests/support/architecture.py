"""The picture of the architecture, drawn from the import contracts, and the map of modules, from their docstrings."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from html import escape

from claudeops.env import BASE_DIR

MODULES = """# Modules

The first sentence of each module and package at the root of an app, and of the library, written from the code by
`python -m tests.support.references`. The [architecture](architecture.md) says how they depend on each other,
[contributing](contributing.md) where a new thing belongs."""
WIDTH, LEFT, LINE, MARGIN, LETTER = 980, 200, 26, 12, 7.3
"""Pixels of the picture, of the column of names, of a line, around a band, and of a letter (monospaced, 12 px)."""
ROOM = 98
"""Letters of a line."""
STYLE = (
    "text { font: 12px monospace; fill: #222 } .app { font-weight: bold; font-size: 15px } .note { fill: #777 } "
    ".band { fill: #f4f6f8; stroke: #99a } .box { fill: #fff; stroke: #bbc }"
)


def contracts() -> dict[str, list[str]]:
    """The layers by package, the upper first, as import-linter reads them; those of "" are the packages themselves."""
    linter = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [contract for contract in linter["contracts"] if contract["type"] == "layers"]
    return {package: one["layers"] for one in layers for package in one.get("containers", [""])}


def groups(layer: str) -> list[list[str]]:
    """The modules of a layer: those of one group may import each other, those of two may not."""
    return [[re.sub(r"[\s\\()]", "", name) for name in group.split(":")] for group in layer.split("|")]


def picture() -> str:
    """An SVG with a band for each package, the upper first, and in it a line for each layer."""
    known = contracts()
    drawn, top = [], MARGIN
    for layer in known[""]:
        modules = [name for group in groups(layer) for name in group]
        package = modules[0] if len(modules) == 1 else modules[0].partition(".")[0]
        lines = [*_lines(known.get(package, [layer]), package)]
        height = LINE * len(lines) + 2 * MARGIN - 6
        place = f'x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{height}"'
        drawn.append(f'<rect class="band" {place} rx="6"/>')
        drawn.append(f'<text class="app" x="{2 * MARGIN}" y="{top + MARGIN + 16}">{package}</text>')
        for number, (texts, note) in enumerate(lines):
            drawn += _line(texts, note, top + MARGIN + number * LINE)
        top += height + MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}">'
    paper = f'<style>{STYLE}</style>\n<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, paper, *drawn, "</svg>\n"])


def _lines(layers: list[str], package: str) -> Iterator[tuple[list[str], str]]:
    """Yield the boxes of each line, and what stands behind them: what a module is for that has its layer alone."""
    for layer in layers:
        if layer == package:
            yield [], first_sentence(package)
            yield from (([part], "") for part in textwrap.wrap(" · ".join(children(package)), ROOM))
            continue
        texts = [" · ".join(name.removeprefix(f"{package}.") for name in group) for group in groups(layer)]
        if len("   ".join(texts)) > ROOM:
            yield from (([part], "") for text in texts for part in textwrap.wrap(text, ROOM))
        else:
            alone = " " not in " ".join(texts)
            yield texts, first_sentence(f"{package}.{texts[0]}") if alone else ""


def _line(texts: list[str], note: str, y: int) -> Iterator[str]:
    x = LEFT
    for text in texts:
        width = int(LETTER * len(text)) + 14
        yield f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{LINE - 6}" rx="3"/>'
        yield f'<text x="{x + 7}" y="{y + 14}">{text}</text>'
        x += width + 10
    if note:
        note = textwrap.shorten(note, int((WIDTH - 2 * MARGIN - x) / LETTER), placeholder=" …")
        yield f'<text class="note" x="{x}" y="{y + 14}">{escape(note)}</text>'


def modules() -> str:
    """A table for each app and the library."""
    written = [MODULES]
    for package in (
        "claudeops",
        "claudeops.features",
        "claudeops.workers",
        "sessions_app",
        "memories",
        "claudeops.lib",
    ):
        written += ["", f"## `{package.replace('.', '/')}/`", "", "| Module | What it is for |", "|---|---|"]
        for name in children(package):
            is_folder = (BASE_DIR / package.replace(".", "/") / name).is_dir()
            if sentence := first_sentence(f"{package}.{name}"):
                written.append(f"| `{name}{'/' if is_folder else '.py'}` | {sentence} |")
    return "\n".join(written) + "\n"


def children(package: str) -> list[str]:
    """The names of a package's modules and packages."""
    paths = (BASE_DIR / package.replace(".", "/")).iterdir()
    is_module = (path for path in paths if path.suffix == ".py" or (path / "__init__.py").exists())
    return sorted(path.stem for path in is_module if path.name != "__init__.py")


def first_sentence(module: str) -> str:
    path = BASE_DIR / module.replace(".", "/")
    package = path / "__init__.py"  # of a package that is gone a folder may be left
    source = (package if package.is_file() else path.with_suffix(".py")).read_text("utf-8")
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", text)[0]
