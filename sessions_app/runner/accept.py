"""What a field of a stream line may hold: the one place that reads fields of lines. Pure.

A field that is missing or null takes its default. A field with a value that is not accepted takes its default too, and
its name is added to `bad`, which the ingest counts: the line stays, the field is dropped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic_core import from_json

from claudeops.lib import times

MOST_DOLLARS = 99_999.999999
"""US dollars. The column holds six digits before the point; a session that cost more than five is a wrong value."""
MOST_TURNS = 2**31 - 1
MOST_MILLISECONDS = 2**53 - 1
MOST_TOKENS = 2**53 - 1
"""The highest integer that JSON keeps exactly; sums of these fit into the columns, too (`added`)."""
DEEPEST = 32
"""Levels of nesting in a value that is stored as JSON. PostgreSQL and SQLite refuse some hundreds."""

Bad = list[str]
Object = Mapping[str, Any]

_NOTHING: Object = {}
_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_UNFIT = re.compile(rb"\\u(?:0000|[dD])")
"""An escape of a NUL, or of a surrogate that may be a lone one."""
_INTEGER_DIGITS = 4000  # Python refuses to convert more than 4,300


def load(raw: bytes, bad: Bad) -> dict[str, Any] | None:
    """Parse the JSON object of a line; None when it holds none. NUL and lone surrogates in it are replaced.

    pydantic's parser takes half the time of Python's. What it refuses as odd (deep, not UTF-8, a control character, an
    integer of thousands of digits) is left to Python's.
    """
    unfit = _UNFIT.search(raw) is not None
    if raw.startswith(b"{") and not unfit:
        with suppress(ValueError):
            plain: dict[str, Any] = from_json(raw)
            return plain
    text = raw.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return None
    try:
        data = _parsed(text, unfit)
    except RecursionError:
        bad.append("nesting")
        try:
            data = _parsed(_shallow(text), unfit)
        except (ValueError, RecursionError):
            return None
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _parsed(text: str, unfit: bool) -> Any:
    """Parse a text; `unfit`: it may hold what `storable` replaces."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if "control character" not in error.msg:
            raise
        return storable(json.loads(text, strict=False, parse_int=_integer))
    except ValueError:  # an integer of thousands of digits
        data = json.loads(text, parse_int=_integer)
    return storable(data) if unfit else data


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _INTEGER_DIGITS else math.inf


def _shallow(text: str) -> str:
    """Replace each value that is nested deeper than DEEPEST levels by null."""
    parts: list[str] = []
    depth = start = 0
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                parts += [text[start : match.start()], "null"]
        elif mark in "]}":
            if depth == DEEPEST + 1:
                start = match.end()
            depth -= 1
    return "".join([*parts, text[start:]]) if depth == 0 else ""


def storable(value: Any) -> Any:
    """Replace what a database cannot store: NUL characters and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def text(data: Object, name: str, bad: Bad) -> str:
    value = data.get(name)
    if isinstance(value, str):
        return value
    if value is not None:
        bad.append(name)
    return ""


def flag(data: Object, name: str, bad: Bad) -> bool:
    value = data.get(name)
    if isinstance(value, bool):
        return value
    if value is not None:
        bad.append(name)
    return False


def integer(data: Object, name: str, bad: Bad, *, most: int = MOST_TOKENS) -> int:
    """Return an integer from 0 to `most`; a float without a fraction is accepted as one."""
    value = data.get(name)
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int and 0 <= value <= most:
        return value
    bad.append(name)
    return 0


def dollars(data: Object, name: str, bad: Bad) -> float | None:
    """Return an amount from 0 to MOST_DOLLARS; None when it is missing or not accepted."""
    value = data.get(name)
    if value is None:
        return None
    if type(value) in (int, float) and 0 <= value <= MOST_DOLLARS:
        return float(value)
    bad.append(name)
    return None


def number(data: Object, name: str, bad: Bad) -> float | None:
    """Return a finite number; None when it is missing or not accepted."""
    value = data.get(name)
    if value is None:
        return None
    if type(value) in (int, float) and -1e15 < value < 1e15:
        return float(value)
    bad.append(name)
    return None


def mapping(data: Object, name: str, bad: Bad) -> Object:
    value = data.get(name)
    if isinstance(value, dict):
        return value
    if value is not None:
        bad.append(name)
    return _NOTHING


def items(data: Object, name: str, bad: Bad) -> list[Any]:
    value = data.get(name)
    if isinstance(value, list):
        return value
    if value is not None:
        bad.append(name)
    return []


def mappings(data: Object, name: str, bad: Bad) -> list[Object]:
    """Return the objects of a list; whatever else is in it counts as a bad field each."""
    values = items(data, name, bad)
    objects: list[Object] = [value for value in values if isinstance(value, dict)]
    bad.extend([name] * (len(values) - len(objects)))
    return objects


def texts(data: Object, name: str, bad: Bad) -> tuple[str, ...]:
    """Return the strings of a list; whatever else is in it counts as a bad field each."""
    values = items(data, name, bad)
    strings = tuple(value for value in values if isinstance(value, str))
    bad.extend([name] * (len(values) - len(strings)))
    return strings


def time(data: Object, name: str, bad: Bad) -> datetime | None:
    """Return an ISO 8601 time (also with nanoseconds) as UTC, not before EARLIEST; without a zone it is UTC."""
    value = data.get(name)
    if value is None:
        return None
    moment = timestamp(value)
    if moment is None:
        bad.append(name)
    return moment


def timestamp(value: Any) -> datetime | None:
    if not isinstance(value, str) or not 19 <= len(value) <= 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment >= times.EARLIEST else None


def document(data: Object, name: str, bad: Bad) -> dict[str, Any] | None:
    """Return an object that both databases store as JSON; in it NaN, Infinity and what is too deep become null."""
    value = data.get(name)
    if isinstance(value, dict):
        dropped: Bad = []
        plain = _plain(value, DEEPEST, dropped)
        bad.extend([name] * len(dropped))
        return dict(plain)
    if value is not None:
        bad.append(name)
    return None


def _plain(value: Any, levels: int, dropped: Bad) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        dropped.append("")
        return None
    if type(value) is int and not -(2**63) <= value < 2**63:
        dropped.append("")
        return None
    if isinstance(value, dict | list):
        if not levels:
            dropped.append("")
            return None
        if isinstance(value, list):
            return [_plain(item, levels - 1, dropped) for item in value]
        return {key: _plain(item, levels - 1, dropped) for key, item in value.items()}
    return value


def added(total: int, more: int, most: int) -> int:
    """Add within the bound of a column."""
    return min(total + more, most)


def as_text(value: Any) -> str:
    """Return free content, such as a tool's result, as text: a string as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to show)"
