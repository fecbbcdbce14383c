"""Evaluation sets as JSON Lines: memories, queries and labelled pairs. Knows no database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from django.utils.dateparse import parse_datetime
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, ValidationError

from memories.capture.text import SURROGATE
from memories.errors import MemoriesError
from memories.matching import Kind


class InvalidSet(MemoriesError):
    """An evaluation file (memories, queries, pairs) cannot be read."""

    code = "invalid_set"


def _storable(value: Any) -> Any:
    """Replace what no database can store: lone surrogates, and NUL on PostgreSQL."""
    return SURROGATE.sub("\ufffd", value).replace("\0", " ") if isinstance(value, str) else value


def _identifier(value: Any) -> Any:
    return str(value) if type(value) is int else _storable(value)


def _time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time; UTC where it names no time zone."""
    if value in (None, ""):
        return None
    found = parse_datetime(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not an ISO 8601 time")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_OPTIONAL = BeforeValidator(lambda value: "" if value is None else _storable(value))

Id = Annotated[str, Field(pattern=r"\S"), BeforeValidator(_identifier)]
Text = Annotated[str, Field(pattern=r"\S"), BeforeValidator(_storable)]
OptionalText = Annotated[str, _OPTIONAL]
Name = Annotated[str, Field(max_length=64), _OPTIONAL]
Slug = Annotated[str, Field(max_length=64, pattern="^[-a-zA-Z0-9_]*$"), _OPTIONAL]
Time = Annotated[datetime | None, BeforeValidator(_time)]


class Line(BaseModel):
    """One line of a set. Fields that are not declared are ignored."""

    model_config = ConfigDict(frozen=True)

    id: Id


class MemoryLine(Line):
    """A memory to store; `project` is a slug. The limits are those of the database's columns."""

    text: Text
    service: Name = ""
    category: Annotated[str, Field(max_length=32), _OPTIONAL] = ""
    project: Slug = ""
    sequence: Annotated[str, Field(max_length=200), _OPTIONAL] = ""
    position: Annotated[StrictInt, Field(ge=-(2**31) + 1, lt=2**31)] | None = None
    created_at: Time = None
    updated_at: Time = None


class QueryLine(Line):
    """A query and the ids of its relevant memories. Without any it is answered and not counted."""

    query: Text
    relevant: list[Id]
    category: OptionalText = ""
    project: OptionalText = ""
    as_of: Time = None


class PairLine(Line):
    """Two texts of one scope, and their relation as a person sees it (None: not labelled)."""

    known: Text
    new: Text
    relation: Annotated[Kind | None, BeforeValidator(lambda value: value or None)] = None
    service: OptionalText = ""
    category: OptionalText = ""


L = TypeVar("L", bound=Line)


def read(path: str | Path, kind: type[L]) -> list[L]:
    """Read the lines of a file, without empty ones. Raises InvalidSet, with the line's number where there is one."""
    found: dict[str, L] = {}
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    one = _parsed(line, kind, f"{path}, line {number}")
                    if one.id in found:
                        raise InvalidSet(
                            f"{path}, line {number}: the id {one.id!r} is there twice.", "Each line needs its own id."
                        )
                    found[one.id] = one
    except OSError as error:
        raise InvalidSet(
            f"{path} cannot be read: {error.strerror or error}.", "Give the path of a JSONL file."
        ) from None
    except UnicodeDecodeError:
        raise InvalidSet(f"{path} is not UTF-8 text.", "Give the path of a JSONL file.") from None
    if not found:
        raise InvalidSet(f"{path} holds no lines.")
    return list(found.values())


def _parsed(line: str, kind: type[L], where: str) -> L:
    try:
        return kind.model_validate(json.loads(line))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = f"{first['loc'][0]!r}: " if first["loc"] else ""
        raise InvalidSet(f"{where}: {field}{first['msg']}.", "docs/recall.md lists the fields of each set.") from None
    except ValueError as error:
        raise InvalidSet(f"{where}: invalid JSON ({error}).", "Each line holds one JSON object.") from None
