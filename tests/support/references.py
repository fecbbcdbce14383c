"""Write the references of docs/ from the program: `python -m tests.support.references`. A test compares."""

from __future__ import annotations

import ast
import os
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import django
from django.core.management import get_commands, load_command_class

from claudeops.env import BASE_DIR, VARIABLES
from tests.support import architecture

OURS = ("claudeops", "memories", "sessions_app")
SETTINGS = """# Settings

Environment variables. `python -m tests.support.references` writes this page from `claudeops/settings.py`.

- A wrong value stops the start with a message that names what is allowed; a misspelt name causes a warning.
- `NAME_FILE` in place of `NAME` is the path of a file that holds the value, as Docker and systemd hand over secrets.
- Lists are comma-separated; a comma inside the parentheses of a tool rule belongs to the rule.
- `true` and `false` may also be `1`, `0`, `yes`, `no`, `on`, `off`.
- `ANTHROPIC_*` and `CLAUDE_CODE_OAUTH_TOKEN` are handed on to the CLI as they are.
"""
COMMANDS = """# Commands

`python -m tests.support.references` writes this page from each `--help`.

- Run the commands as `python manage.py …` from the checkout; they read the [settings](settings.md).
- With `--json` a command prints one JSON document on stdout and nothing else there:
  `{"ok": true, "command": …, "result": …, "next_actions": […]}`, or
  `{"ok": false, "error": {"code", "message"}, "fix": …}`.
- Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
- Django's own commands are there too: `migrate`, `createsuperuser`, `changepassword`, `check`, `shell`.
"""
OF_DJANGO = {
    "help",
    "version",
    "verbosity",
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
}


def settings() -> str:
    """A table for each heading `# == … ==` of the settings; what a variable is for stands below its declaration."""
    source = (BASE_DIR / "claudeops" / "settings.py").read_text("utf-8")
    lines = {number: line for number, line in enumerate(source.splitlines(), 1) if line.startswith("# == ")}
    found = [SETTINGS]
    body = ast.parse(source).body
    for statement, text in pairwise(body):
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        name = next((ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "env.read"), None)
        if name is None:
            continue
        for number in [number for number in lines if number < statement.lineno]:
            heading = lines.pop(number).strip("# =")
            found += ["", f"## {heading}", "", "| Variable | Default | Allowed | What it is for |", "|---|---|---|---|"]
        purpose = " ".join(ast.literal_eval(text.value).split())  # type: ignore[attr-defined]
        variable = VARIABLES[name]
        default = variable.shown or as_in_the_environment(variable.default)
        found.append(row(f"`{name}`", default, variable.kind.allowed, purpose))
    return "\n".join(found) + "\n"


def as_in_the_environment(value: Any) -> str:
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, list):
        value = ",".join(value)
    elif isinstance(value, float):
        value = f"{value:g}"
    return f"`{value}`" if value not in ("", None) else ""


def row(*cells: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (cell.replace("|", "\\|") for cell in cells)) + "|"


def commands() -> str:
    found = [COMMANDS]
    for name, app in sorted(get_commands().items()):
        if app in OURS:
            found += help_of(load_command_class(app, name).create_parser("manage.py", name), "##")
    return "\n".join(found)


def help_of(parser: ArgumentParser, heading: str) -> Iterator[str]:
    """A part for the command, one for each verb."""
    yield from ("", f"{heading} {parser.prog.removeprefix('manage.py ')}", "", parser.description or "")
    verbs = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    options = [action for action in parser._actions if action.dest not in OF_DJANGO and action not in verbs]
    if options:
        yield from ("", "| Argument | What it is |", "|---|---|")
        yield from (row(f"`{as_typed(option)}`", (option.help or "") % vars(option)) for option in options)
    for action in verbs:
        for verb in action.choices.values():
            yield from help_of(verb, f"{heading}#")


def as_typed(option: Action) -> str:
    value = option.metavar or ("|".join(map(str, option.choices)) if option.choices else option.dest.upper())
    value = "" if option.nargs == 0 else f"{value}…" if option.nargs in ("+", "*") else str(value)
    return " ".join(filter(None, (*option.option_strings[-1:], value)))


REFERENCES = {
    "docs/settings.md": settings,
    "docs/commands.md": commands,
    "docs/modules.md": architecture.modules,
    "docs/pictures/architecture.svg": architecture.picture,
}
"""The files, and what makes their text."""

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "claudeops.settings")
    django.setup()
    for path, written in REFERENCES.items():
        (BASE_DIR / path).write_text(written(), "utf-8")
