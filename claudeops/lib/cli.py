"""Base classes of management commands: one noun, verbs under it, `--json` on each.

With `--json` stdout holds one JSON document only. A refusal goes to stderr (or into the document) with its fix and exit
code 1; wrong usage exits with 2.
"""

from __future__ import annotations

import difflib
import getpass
import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from django.core.checks import Tags, registry
from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError

from claudeops.lib import database_version, outage
from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import mask

OF_PAGES = frozenset({Tags.urls, Tags.admin, Tags.templates})
"""Tags of checks that import every page (one second). The web server and `manage.py check` run them."""


class Refusal(Exception):
    """The refusal of a command. `code` is stable, `message` says why, `fix` what to do."""

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.fix = code, message, fix


@dataclass(frozen=True, slots=True)
class NextAction:
    command: str
    description: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a verb: `data` for `--json`, `text` for people; `exit_code` where it is part of the answer.

    `error` is (code, message, fix) when nothing was done: the document then says so, beside `data`.
    """

    data: Any
    text: str = ""
    next_actions: Sequence[NextAction] = ()
    exit_code: int = 0
    error: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of a command. `run` gets the parsed options as keyword arguments."""

    help: str
    run: Callable[..., Result]
    arguments: Callable[[ArgumentParser], None] = field(default=lambda parser: None)


def error_of(error: Exception) -> tuple[str, str, str] | None:
    """Return (code, message, fix) of an error that the user can correct; None for a bug."""
    if isinstance(error, Refusal):
        return error.code, error.message, error.fix
    if isinstance(error, DomainError):
        return error.code, str(error), error.fix
    found = outage.named_in(error)
    if not found and isinstance(error, DatabaseError) and (difference := _difference()):
        return "not_migrated", *difference
    found = found or outage.behind(error)
    return (found.code, found.message, found.fix) if found else None


def _difference() -> tuple[str, str] | None:
    """Return what `database_version.difference` does; None also when the database cannot be read."""
    try:
        return database_version.difference()
    except DatabaseError:
        return None


class VerbCommand(BaseCommand):
    """A command with verbs. A subclass sets `noun` and `verbs`."""

    noun = ""
    verbs: Mapping[str, Verb] = {}

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.description = self.help or None
        return parser

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        return {"tags": sorted(registry.registry.tags_available() - OF_PAGES)}

    def add_arguments(self, parser: CommandParser) -> None:
        under = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_SubParser)
        for name, verb in self.verbs.items():
            child = under.add_parser(name, help=verb.help, description=verb.help)
            child.add_argument("--json", action="store_true", help="print one JSON document")
            verb.arguments(child)

    def handle(self, *args: Any, **options: Any) -> str | None:
        name = options["verb"]
        self.answer(f"{self.noun} {name}", self.verbs[name].run, options)
        return None

    def answer(self, command: str, run: Callable[..., Result], options: Mapping[str, Any]) -> None:
        as_json = options.get("json", False)
        known = {"verb", "json", *_BASE_OPTIONS}
        chosen = {key: value for key, value in options.items() if key not in known}
        try:
            result = run(**chosen)
        except Exception as error:
            found = error_of(error)
            if found is None:
                raise
            self.refuse(command, found, as_json)
        if as_json:
            document: dict[str, Any] = {"ok": True, "command": command}
            if result.error:
                code, message, fix = result.error
                document = {"ok": False, "command": command, "error": {"code": code, "message": message}, "fix": fix}
            document |= {
                "result": result.data,
                "next_actions": [
                    {"command": action.command, "description": action.description} for action in result.next_actions
                ],
            }
            self.stdout.write(json.dumps(document, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2))
        elif result.text:
            self.stdout.write(result.text)
        if result.exit_code:
            sys.exit(result.exit_code)

    def agreed(self, difference: str, dry_run: bool, yes: bool) -> bool:
        """Show the difference, and ask whether to write it. Raises Refusal where nobody can answer."""
        if dry_run:
            return False
        if not yes and not sys.stdin.isatty():
            raise Refusal("not_agreed", "Nobody is there to agree to the change.", "Add --yes, or --dry-run to see it.")
        self.stderr.write(difference)  # stdout is for the result
        return yes or input("Write this? [y/N] ").strip().lower() in ("y", "yes")

    def refuse(self, command: str, found: tuple[str, str, str], as_json: bool) -> NoReturn:
        code, message, fix = found
        if as_json:
            document = {"ok": False, "command": command, "error": {"code": code, "message": message}, "fix": fix}
            self.stdout.write(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            self.stderr.write(self.style.ERROR(f"Error: {message}"))
            if fix:
                self.stderr.write(fix)
        sys.exit(1)


class SoleCommand(VerbCommand):
    """A command without verbs (`doctor`). A subclass sets `noun` and `run`."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def run(self, *args: Any, **options: Any) -> Result:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> str | None:
        self.answer(self.noun, self.run, options)
        return None


_BASE_OPTIONS = (
    "version",
    "verbosity",
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
    "stdout",  # call_command adds these two
    "stderr",
)


class _SubParser(ArgumentParser):
    """Plain argparse: a usage error exits with 2 and prints the verb's usage."""


def difference_of(path: Path, before: str | None, after: str | None) -> str:
    """Return what would change in a file (None: there is no file) as a unified difference, without secrets."""
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True), (after or "").splitlines(keepends=True), str(path), str(path)
    )
    return mask("".join(line if line.endswith("\n") else f"{line}\n" for line in lines))


def unchanged(difference: str, dry_run: bool) -> str:
    return f"{difference}Nothing was changed (--dry-run)." if dry_run else "Nothing was changed."


def current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user id has no name, as in some containers
        return "command line"


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [[str(header) for header in headers], *[["" if v is None else str(v) for v in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
