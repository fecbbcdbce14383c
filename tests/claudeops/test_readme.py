"""README.md against the program: what it can do is written there, as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.core.management import get_commands, load_command_class

from claudeops.env import BASE_DIR
from claudeops.lib.cli import VerbCommand

OURS = ("claudeops", "memories", "sessions_app")
START = "pip install -r requirements.txt && python manage.py up --demo"
TEST = "pip install -r tests/requirements.txt && pytest"


@pytest.fixture(scope="module")
def readme() -> str:
    return (BASE_DIR / "README.md").read_text(encoding="utf-8")


def our_commands() -> Iterator[tuple[str, str]]:
    """(command, verb) of everything `manage.py` can do here; the verb is empty where a command has none."""
    for name, app in sorted(get_commands().items()):
        if app in OURS:
            command = load_command_class(app, name)
            verbs = list(command.verbs) if isinstance(command, VerbCommand) else [""]
            yield from ((name, verb) for verb in verbs)


def test_a_newcomer_finds_the_two_lines(readme):
    lines = [line.split("#")[0].strip() for line in readme.splitlines()]
    assert START in lines
    assert TEST in lines


def test_the_first_screen_shows_the_running_thing_and_the_two_lines(readme):
    first_screen = "\n".join(readme.splitlines()[:40])
    assert START in first_screen
    assert TEST in first_screen
    picture = re.search(r"!\[[^\]]+\]\(([^)]+)\)", first_screen)
    assert picture
    assert (BASE_DIR / picture[1]).is_file()


def test_every_command_with_every_verb_is_in_the_readme(readme):
    missing = []
    for name, verb in our_commands():
        # `manage.py session list` on a line, or `manage.py session list|show|stop`
        if not re.search(rf"\b{name}\b" + (rf"[ `|\w]*\b{re.escape(verb)}\b" if verb else ""), readme):
            missing.append(f"{name} {verb}".strip())
    assert not missing


def test_every_command_in_the_readme_exists(readme):
    known = get_commands()
    named = set(re.findall(r"manage\.py ([a-z_-]+)", readme))
    assert not {name for name in named if name not in known}


def test_what_the_readme_links_to_is_there(readme):
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", readme)]
    missing = [link for link in links if link and "://" not in link and not (BASE_DIR / link).exists()]
    assert not missing
