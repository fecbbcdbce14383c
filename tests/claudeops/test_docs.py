"""Check the documents against the code: what they name exists, and what exists is named."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands

from claudeops.env import BASE_DIR, VARIABLES
from memories.taxonomy import OPS
from sessions_app.models import Status
from sessions_app.runner.agent_hooks import groups
from tests.support.references import REFERENCES

DOCS = BASE_DIR / "docs"
DOCUMENTS = [BASE_DIR / "README.md", *sorted(DOCS.glob("*.md"))]
WIDEST = 100
"""Characters of a line of the diagram: wider ones are cut off or scrolled on most screens."""


def read(name: str) -> str:
    return (BASE_DIR / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def anchor(heading: str) -> str:
    """A heading's address, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(document: Path) -> Iterator[tuple[Path, str]]:
    """(file, anchor) of every link inside the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            path, _, fragment = target.partition("#")
            yield (document.parent / path).resolve() if path else document, fragment


def requirements(name: str) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in read(name).splitlines())
    return {re.split(r"[\[=<>]", line)[0].lower() for line in lines if line and not line.startswith("-")}


def test_every_link_leads_somewhere(subtests):
    for document in DOCUMENTS:
        with subtests.test(str(document)):
            broken = []
            for path, fragment in links(document):
                if not path.exists():
                    broken.append(str(path))
                elif fragment:
                    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                    if fragment not in [anchor(heading) for heading in headings]:
                        broken.append(f"{path.name}#{fragment}")
            assert not broken


def test_each_python_file_that_a_document_names_is_there():
    """A document may leave out the first folders of a path: `queue/dispatch.py`."""
    files = [path.relative_to(BASE_DIR).as_posix() for path in BASE_DIR.rglob("*.py") if ".venv" not in path.parts]
    gone = [
        f"{document.name}: {name}"
        for document in sorted(BASE_DIR.glob("docs/*.md"))
        for name in re.findall(r"`([\w/]+\.py)`", document.read_text(encoding="utf-8"))
        if not any(f"/{file}".endswith(f"/{name}") for file in files)
    ]
    assert gone == []


def test_what_the_architecture_names_by_path_is_there():
    text = read("docs/architecture.md")
    named = set(re.findall(r"`((?:claudeops|memories|sessions_app|templates|tests)/[\w./]+)`", text))
    assert named
    assert not {path for path in named if not (BASE_DIR / path).exists()}


def test_the_diagram_of_the_readme_is_drawn_straight():
    drawn = [block for block in blocks(read("README.md"), "") if "┌" in block]
    assert len(drawn) == 1
    lines = drawn[0].splitlines()
    assert max(map(len, lines)) <= WIDEST
    for number, line in enumerate(lines):
        for column, character in enumerate(line):
            below = lines[number + 1] if number + 1 < len(lines) else ""
            if character in "┌┐┬├┤" and not (column < len(below) and below[column] in "│├┤└┘┴┼▼"):
                pytest.fail(f"line {number + 1}, column {column + 1}: {character} goes on to nothing")


def test_every_dependency_is_argued_for():
    text = read("docs/dependencies.md").lower()
    asked = requirements("requirements.txt") | requirements("tests/requirements.txt")
    rows = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))
    assert not {name for name in asked if not re.search(rf"\b{re.escape(name)}\b", rows)}


def test_the_readme_is_short_and_its_first_screen_shows_the_running_thing_and_the_two_lines():
    lines = read("README.md").splitlines()
    assert len(lines) <= 150
    first_screen = lines[:40]
    commands = {line.split("#")[0].strip() for line in first_screen}
    assert commands >= {
        "pip install -r requirements.txt && python manage.py up --demo",
        "pip install -r tests/requirements.txt && pytest",
    }
    assert re.search(r"!\[[^\]]+\]\([^)]+\)", "\n".join(first_screen))


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_is_what_the_program_says(name):
    """`python -m tests.support.references` writes them."""
    assert read(name) == REFERENCES[name]()


def test_every_command_that_a_document_names_exists():
    named = {name for path in DOCUMENTS for name in re.findall(r"manage\.py ([a-z_-]+)", path.read_text("utf-8"))}
    assert named
    assert not named - set(get_commands())


def test_no_document_names_a_variable_that_is_unknown(subtests):
    for document in DOCUMENTS:
        with subtests.test(document.name):
            named = set(re.findall(r"\bCLAUDEOPS_[A-Z0-9_]*[A-Z0-9]\b", document.read_text("utf-8")))
            assert not {name for name in named if not {name, name.removesuffix("_FILE")} & set(VARIABLES)}


def test_the_hook_is_settings_that_the_cli_reads():
    (text,) = blocks(read("docs/hooks.md"), "json")
    (entry,) = json.loads(text)["hooks"]["PreToolUse"]
    assert entry["matcher"] == "Bash"
    ((event, installed),) = groups("cooldowns", url="http://127.0.0.1:8000", token="$OPS_HOOK_TOKEN")
    assert (event, installed) == ("PreToolUse", entry)


def test_the_units_let_running_sessions_live():
    units = [unit for unit in blocks(read("docs/production.md"), "ini") if "[Service]" in unit]
    assert len(units) == 2
    services = []
    for unit in units:
        parsed = configparser.ConfigParser(interpolation=None)
        parsed.read_string(unit)
        services.append(parsed["Service"])
    web, worker = services
    assert "gunicorn claudeops.wsgi" in web["ExecStart"]
    assert worker["ExecStart"].endswith("manage.py runworker")
    assert worker["KillMode"] == "process"


def test_the_operators_words_are_the_programs():
    text = read("docs/operating.md")
    assert not {status.label for status in Status if f"| {status.label} |" not in text}
    assert ", ".join(OPS.categories) in text
    for number in (OPS.reinforced_by, OPS.inactive_below):
        assert f"{number:g}" in text


def keys_of_the_dialog() -> list[tuple[str, str]]:
    """(keys, what they do) as `?` shows them."""
    rows = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", read("templates/_keys.html"))
    return [(" ".join(re.findall(r"<kbd>(.*?)</kbd>", keys)), what) for keys, what in rows]


def test_the_keys_are_written_down_as_the_page_shows_them():
    rows = re.findall(r"^\| ((?:`[^`]+` ?)+)\| (.*?) \|$", read("docs/dashboard.md"), re.MULTILINE)
    written = {(" ".join(re.findall(r"`([^`]+)`", keys)), what) for keys, what in rows}
    assert keys_of_the_dialog()
    assert set(keys_of_the_dialog()) <= written


def test_the_document_of_the_dashboard_has_a_part_for_every_page_in_the_sidebar():
    pages = re.findall(r"nav_link \"\w+\" \"(\w+)\"", read("templates/_header.html"))
    headings = re.findall(r"^## (.+)$", read("docs/dashboard.md"), re.MULTILINE)
    assert len(pages) > 4
    assert [heading for heading in headings if heading in pages] == pages


def test_the_pictures_are_small_enough_to_be_looked_at():
    pictures = sorted((DOCS / "pictures").glob("*.png"))
    assert {path.stem for path in pictures} == {"overview", "memories", "memory", "session"}
    assert max(path.stat().st_size for path in pictures) < 250_000


def terms_of_the_glossary() -> set[str]:
    return {term.lower() for term in re.findall(r"^\| \*\*([^*]+)\*\*", read("docs/glossary.md"), re.MULTILINE)}


def test_every_model_is_in_the_glossary():
    models = [model for package in ("memories", "sessions_app") for model in apps.get_app_config(package).get_models()]
    names = {str(model._meta.verbose_name).lower() for model in models}
    assert names
    assert not names - terms_of_the_glossary()


def test_every_page_of_the_sidebar_is_in_the_glossary():
    labels = re.findall(r'nav_link "[^"]+" "([^"]+)"', read("templates/_header.html"))
    assert "Memories" in labels
    terms = terms_of_the_glossary()
    singular = {label.lower(): re.sub(r"ies$", "y", label.lower()).removesuffix("s") for label in labels}
    assert not {label for label, one in singular.items() if label not in terms and one not in terms}
