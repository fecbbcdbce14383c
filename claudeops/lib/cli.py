"""Management commands: one noun, verbs under it, `--json` on each. A verb's arguments stand in its signature.

With `--json` stdout holds one JSON document only. A refusal goes to stderr (or into the document) with its fix and exit
code 1; wrong usage exits with 2.
"""

from __future__ import annotations

import difflib
import getpass
import inspect
import json
import sys
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import IO, Any, ClassVar, NoReturn, TextIO, TypeVar, get_args, get_origin, get_type_hints

from django.core.checks import Tags, registry
from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError

from claudeops.lib import database_version, outage, times
from claudeops.lib.domain_error import DomainError
from claudeops.lib.files import whole_file
from claudeops.lib.secrets import mask

OF_PAGES = frozenset({Tags.urls, Tags.admin, Tags.templates})
"""Tags of checks that import every page (one second). The web server and `manage.py check` run them."""


class Refusal(Exception):
    """The refusal of a command. `code` is stable, `message` says why, `fix` what to do."""

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.fix = code, message, fix


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a verb: `data` for `--json`, dataclasses too, `text` for people; `exit_code` where it is an answer.

    `next_actions` are commands, each with what it is for. `error` is (code, message, fix) when nothing was done: the
    document then says so, beside `data`.
    """

    data: Any
    text: str = ""
    next_actions: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0
    error: tuple[str, str, str] | None = None


class Argument:
    def __init__(self, **options: Any) -> None:
        self.options = options


def arg(help: str | None = None, **options: Any) -> Any:  # noqa: A002  (argparse's word)
    """Return the default of a parameter that is an argument: `number: int = arg("the session's number", metavar="ID")`.

    The options are argparse's, and `read`, which makes of each value what the verb gets when it runs (its error is a
    refusal, one of `type` is wrong usage), `within`, the least and the largest number, and `group`, of which at most
    one may be given, or exactly one that is `required`.
    """
    return Argument(help=help, **options)


Function = TypeVar("Function", bound=Callable[..., Result])


def verb(function: Function) -> Function:
    """Make a method a verb of its command, named like it; its docstring's first paragraph is the help.

    What can be given by position is an argument; what is keyword-only, or a field of a dataclass, is an option. A bool
    is a switch, a Sequence may be given several times; what may be None, or has a default, may be left out. A `_` at
    the end of a name is only there for Python.
    """
    function.is_verb = True  # type: ignore[attr-defined]
    return function


class _Parameter:
    """A parameter of a verb: an argument of its parser, or with a dataclass several."""

    def __init__(self, name: str, hint: Any, default: Any, *, is_option: bool) -> None:
        self.name, self.is_option = name, is_option
        own = {} if default is inspect.Parameter.empty else {"default": default}
        self.options = dict(default.options) if isinstance(default, Argument) else own
        self.read, self.within, self.group = (self.options.pop(key, None) for key in ("read", "within", "group"))
        self.may_be_none = NoneType in get_args(hint)
        if self.may_be_none:
            (hint,) = (one for one in get_args(hint) if one is not NoneType)
        self.several = get_origin(hint) is Sequence
        (self.type,) = get_args(hint) if self.several else (hint,)
        self.fields = list(_parameters(hint, are_options=True)) if isinstance(hint, type) and is_dataclass(hint) else []

    def add_to(self, parser: ArgumentParser, groups: dict[str, Any]) -> None:
        for one in self.fields:
            one.add_to(parser, groups)
        if self.fields:
            return
        name, options = self.name.strip("_").replace("_", "-"), dict(self.options)
        is_required = not self.may_be_none and "default" not in options
        if self.type is bool:
            options["action"] = BooleanOptionalAction if self.may_be_none else "store_true"
        elif self.type in (int, float):
            options.setdefault("type", self.type)
        holder: Any = parser
        if self.group:
            if self.group not in groups:
                groups[self.group] = parser.add_mutually_exclusive_group(required=options.pop("required", False))
            holder = groups[self.group]
        if self.is_option:
            if self.several:
                options["action"] = "append"
            elif self.type is not bool:
                options["required"] = is_required
            holder.add_argument(f"--{name}", dest=self.name, **options)
        else:
            options.setdefault("metavar", None if "choices" in options else name.upper())
            nargs = ("+" if is_required else "*") if self.several else None if is_required else "?"
            holder.add_argument(self.name, nargs=nargs, **options)

    def value(self, options: Mapping[str, Any]) -> Any:
        """Return what the verb gets of the parsed options. Raises Refusal, and what `read` raises."""
        if self.fields:
            return self.type(**{one.name: one.value(options) for one in self.fields})
        value = options[self.name]
        if value is None:
            return [] if self.several and not self.may_be_none else None
        if self.within and not self.within[0] <= value <= self.within[1]:
            least, most = self.within
            raise Refusal("usage", f"--{self.name.replace('_', '-')} is {value}; allowed is {least} to {most}.")
        if self.read is None:
            return value
        return [self.read(one) for one in value] if self.several else self.read(value)


def _parameters(owner: Callable[..., Any], *, are_options: bool = False) -> Iterator[_Parameter]:
    """Yield the parameters of a verb or of a dataclass."""
    hints = get_type_hints(owner)
    for one in inspect.signature(owner).parameters.values():
        if one.name != "self":
            is_option = are_options or one.kind is one.KEYWORD_ONLY
            yield _Parameter(one.name, hints[one.name], one.default, is_option=is_option)


def error_of(error: Exception) -> tuple[str, str, str] | None:
    """Return (code, message, fix) of an error that the user can correct; None for a bug."""
    if isinstance(error, Refusal):
        return error.code, error.message, error.fix
    if isinstance(error, DomainError):
        return error.code, str(error), error.fix
    cause = outage.named_in(error)
    if not cause and isinstance(error, DatabaseError) and (difference := _difference()):
        return "not_migrated", *difference
    cause = cause or outage.behind(error)
    return (cause.code, cause.message, cause.fix) if cause else None


def _difference() -> tuple[str, str] | None:
    """Return what `database_version.difference` does; None also when the database cannot be read."""
    try:
        return database_version.difference()
    except DatabaseError:
        return None


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        if is_dataclass(o):
            return {one.name: getattr(o, one.name) for one in fields(o)}
        return super().default(o)


class VerbCommand(BaseCommand):
    """A command whose methods that are marked with `verb` are its verbs; its noun is the name of its module."""

    verbs: ClassVar[dict[str, Callable[..., Result]]] = {}
    as_json = False
    """Whether the verb that runs answers with one JSON document."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.verbs = {
            name.strip("_").replace("_", "-"): method
            for owner in reversed(cls.__mro__)
            for name, method in vars(owner).items()
            if getattr(method, "is_verb", False)
        }

    @property
    def noun(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.description = self.help or None
        return parser

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        return {"tags": sorted(registry.registry.tags_available() - OF_PAGES)}

    def add_arguments(self, parser: CommandParser) -> None:
        under = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=ArgumentParser)
        for name, method in self.verbs.items():
            words = " ".join((method.__doc__ or "").partition("\n\n")[0].split())
            self.add_arguments_of(method, under.add_parser(name, help=words, description=words))

    def add_arguments_of(self, method: Callable[..., Result], parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        groups: dict[str, Any] = {}
        for parameter in _parameters(method):
            parameter.add_to(parser, groups)

    def handle(self, *args: Any, **options: Any) -> None:
        method = self.verbs[options["verb"]]
        self.answer(f"{self.noun} {options['verb']}", method.__get__(self), options)

    def answer(self, command: str, run: Callable[..., Result], options: Mapping[str, Any]) -> None:
        self.as_json = bool(options.get("json"))
        try:
            result = run(**{one.name: one.value(options) for one in _parameters(run)})
        except Exception as error:
            refusal = error_of(error)
            if refusal is None:
                raise
            self.refuse(command, refusal)
        if self.as_json:
            document = _refused(command, result.error) if result.error else {"ok": True, "command": command}
            actions = [{"command": command, "description": to} for command, to in result.next_actions.items()]
            self._write_json(document | {"result": result.data, "next_actions": actions})
        elif text := self.printable(result.text):
            self.stdout.write(text)
        if result.exit_code:
            sys.exit(result.exit_code)

    def printable(self, text: str) -> str:
        """Return the text of a result as it is printed."""
        return text

    def agreed(
        self, text: str, *, yes: bool, question: str = "Write this?", what: str = "change", dry_run: bool = False
    ) -> bool:
        """Show what would be done, and ask whether to do it. Raises Refusal where nobody can answer."""
        if dry_run:
            return False
        if not yes and not sys.stdin.isatty():
            raise Refusal(
                "not_agreed", f"Nobody is there to agree to the {what}.", "Add --yes, or --dry-run to see it."
            )
        self.stderr.write(text)  # stdout is for the result
        return yes or input(f"{question} [y/N] ").strip().lower() in ("y", "yes")

    def export_lines(
        self, lines: Iterable[str], file: str, opened: Callable[[Path], AbstractContextManager[IO[str]]] = whole_file
    ) -> int | None:
        """Write the lines to a file and return their number; "-" is stdout, with None. Raises Refusal."""
        if file == "-":
            if self.as_json:
                raise Refusal("usage", "--json and an export to stdout do not go together.", "Name a FILE.")
            for line in lines:
                self.stdout.write(line)
            return None
        count = 0
        with writing(file, opened) as out:
            for count, line in enumerate(lines, start=1):  # noqa: B007
                out.write(line + "\n")
        return count

    def refuse(self, command: str, found: tuple[str, str, str]) -> NoReturn:
        _, message, fix = found
        if self.as_json:
            self._write_json(_refused(command, found))
        else:
            self.stderr.write(self.style.ERROR(f"Error: {message}"))
            if fix:
                self.stderr.write(fix)
        sys.exit(1)

    def _write_json(self, document: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(document, cls=_Encoder, ensure_ascii=False, indent=2))


class SoleCommand(VerbCommand):
    """A command without verbs (`doctor`). A subclass defines `run`, with the command's arguments."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        self.add_arguments_of(self.run, parser)

    def run(self, *args: Any, **options: Any) -> Result:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        self.answer(self.noun, self.run, options)


def _refused(command: str, error: tuple[str, str, str]) -> dict[str, Any]:
    code, message, fix = error
    return {"ok": False, "command": command, "error": {"code": code, "message": message}, "fix": fix}


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


def by(help: str = "the actor of the change (default: your account)") -> Any:  # noqa: A002
    """Return the option of who does it: a name, or empty for the account of this process."""
    return arg(help, default="", read=lambda name: name or current_user())


def text_or_stdin(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def moment(option: str, allowed: str) -> Callable[[str], datetime]:
    """Return a reader of a day or time in ISO 8601, UTC where no zone is given. Another text is refused."""

    def read(given: str) -> datetime:
        try:
            at = datetime.fromisoformat(given)
            return times.in_utc(at if at.tzinfo else at.replace(tzinfo=UTC))
        except ValueError:
            raise Refusal("usage", f"{option} is {given!r}; allowed is {allowed}.") from None

    return read


@contextmanager
def reading(file: str) -> Iterator[TextIO]:
    """Open a text in UTF-8; "-" is stdin. Raises Refusal when it cannot be read."""
    if file == "-":
        yield sys.stdin
        return
    try:
        with Path(file).open(encoding="utf-8") as opened:
            yield opened
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Refusal("file", f"{file} cannot be read: {why}.") from error


@contextmanager
def writing(
    file: str, opened: Callable[[Path], AbstractContextManager[IO[str]]] = whole_file, code: str = "file"
) -> Iterator[IO[str]]:
    """Open a file to write it, by default whole or not at all. Raises Refusal when it cannot be written."""
    try:
        with opened(Path(file)) as out:
            yield out
    except OSError as error:
        raise Refusal(code, f"{file} cannot be written: {error.strerror or error}.") from error


def columns(row: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def table(headers: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = [["" if v is None else str(v) for v in row] for row in (list(headers), *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


Columns = Mapping[str, str | Callable[[Any], Any]]
"""Of a table of records: for each header an attribute, or a function of a record."""


def listing(records: Sequence[Any], columns: Columns, empty: str = "") -> str:
    """Return records as a table; `empty` for none."""
    getters = [attrgetter(getter) if isinstance(getter, str) else getter for getter in columns.values()]
    return table(columns, [[getter(one) for getter in getters] for one in records]) if records else empty


def more(listed: int, count: int, gap: str = "\n") -> str:
    """Return the sentence below a list that was cut; empty when it was not."""
    return f"{gap}{listed:,} of {count:,}; --limit shows more." if count > listed else ""
