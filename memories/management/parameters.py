"""Arguments that several commands about memories share."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django_filters import FilterSet

from claudeops.lib.cli import Refusal, arg, by
from memories.errors import MemoryNotFound
from memories.lifecycle.projects import find_project
from memories.models import Exposure, Memory, Source, Trust
from memories.models.project import FILE_LIMITS

MOST_SHOWN = 200
"""Held memories in a list: for each the nearest known one is looked for."""
WINDOW = 'such as "first monday", "12-24..12-26" or "mon 08:00-12:00 Europe/Vienna"'
DEFAULT = "default"
LIMITS = ", ".join(f"{name} {least} to {most}" for name, (_, least, most) in FILE_LIMITS.items())

REASON = arg("why, for the history", default="")
DRY_RUN = arg("only say what would change")
MEMORY = arg("the memory's number or UUID", metavar="ID")
ALL_MATCHING = arg("all that the filters find, instead of IDs")
YES_TO_ALL = arg("do it; without it --all-matching says what would be done")
SHOWN = arg(f"how many list shows (1 to {MOST_SHOWN})", default=20, within=(1, MOST_SHOWN))


@dataclass(frozen=True)
class Why:
    by: str = by()
    reason: str = REASON


@dataclass(frozen=True)
class Filters:
    service: str | None = arg("general for those without one")
    category: str | None = None
    taxonomy: str | None = None
    project: str | None = arg("a project's slug, or global")
    text: str | None = arg("words that the observation contains")
    source: str | None = arg(choices=Source.values)
    exposure: str | None = arg("what its session had read before", choices=Exposure.values)
    trust: str | None = arg("the least trusted of its lineage", choices=Trust.values)
    session: str | None = arg("the session that created it")
    tier: str | None = arg(choices=("0", "1", "2", "3"))


def project(help: str) -> Any:  # noqa: A002
    """Return the argument for a slug that gives the verb the project. A slug without a project is refused."""
    return arg(help, metavar="SLUG", read=find_project)


def memories(help: str) -> Any:  # noqa: A002
    """Return the argument for numbers or UUIDs that gives the verb the memories. One without a memory is refused."""
    return arg(help, metavar="ID", read=find_memory)


def filter_rows(
    filters: type[FilterSet], options: Mapping[str, Any], rows: QuerySet[Any], fix: str = ""
) -> QuerySet[Any]:
    """Return the rows that the options of a list choose; None is no filter. Raises Refusal."""
    values = {name: value for name, value in options.items() if value is not None}
    bound = filters(values, queryset=rows)
    if not bound.is_valid():
        name, errors = next(iter(bound.errors.items()))
        raise Refusal("usage", f"--{name} is {values.get(name)!r}: {errors[0]}", fix)
    matches: QuerySet[Any] = bound.qs
    return matches


def find_memory(given: str) -> Memory:
    """Raises MemoryNotFound."""
    key = {"pk": int(given)} if is_number(given) else {"uuid": _uuid(given)}
    memory = Memory.objects.select_related("project").filter(**key).first()
    if memory is None:
        raise MemoryNotFound(f"There is no memory {given}.", "List memories: manage.py memory list")
    return memory


def is_number(given: str) -> bool:
    return given.isdecimal() and len(given) < 19


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise MemoryNotFound(f"{text!r} is neither a number nor a UUID of a memory.") from None


def look(pk: int) -> dict[str, str]:
    return {f"manage.py memory show {pk}": "see it with its history"}


def assignment(
    names: Collection[str], what: str, form: str, examples: str, words: Collection[str]
) -> Callable[[str], tuple[str, int | str]]:
    """Return a parser of NAME=N, or NAME=WORD with one of `words`."""

    def parse(text: str) -> tuple[str, int | str]:
        name, _, number = text.partition("=")
        if name not in names:
            raise ArgumentTypeError(f"{name!r} is no {what}; allowed are {', '.join(names)}")
        if number in words:
            return name, number
        if not number.isascii() or not number.isdecimal() or len(number) > 9:
            raise ArgumentTypeError(f"{text!r} is no {form}; examples: {examples}")
        return name, int(number)

    return parse


file_limit = assignment(FILE_LIMITS, "limit", "NAME=N", "kilobytes=16, items=default", (DEFAULT,))
