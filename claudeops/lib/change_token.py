"""Change tokens: what a page shows, as a short text that the browser sends back with each poll.

The server answers 204 when the page is up to date, else only the changes. A token has three sections, each may be
empty: a hash of a few cheap values that change with the page (its state), a hash of each rendered part, and the rows
in order, each with a hash of what is shown of it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

SECTIONS, BETWEEN, WITHIN = "~", "-", "."
LONGEST = 8000
"""Most characters that are read of a token: 250 rows."""

CSRF = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')

Row = TypeVar("Row")


def hash_of(value: Any) -> str:
    return f"{zlib.crc32(repr(value).encode()):08x}"


@dataclass(frozen=True, slots=True)
class ChangeToken:
    """What a browser shows. `rows` maps each row's key to its hash, which is empty for rows that never change."""

    state: str = ""
    parts: tuple[str, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = BETWEEN.join(f"{key}{WITHIN}{mark}" if mark else key for key, mark in self.rows.items())
        return SECTIONS.join((self.state, BETWEEN.join(self.parts), rows)).rstrip(SECTIONS)


def read_token(text: str) -> ChangeToken:
    """Parse a token. An invalid text gives a token that equals no page's."""
    state, parts, rows = [*text[:LONGEST].split(SECTIONS), "", ""][:3]
    pairs = (part.partition(WITHIN) for part in rows.split(BETWEEN) if part)
    marks = {key: mark for key, _, mark in pairs if key.isascii() and key.isalnum() and len(key) < 20}
    return ChangeToken(state, tuple(parts.split(BETWEEN)) if parts else (), marks)


def parts_of(pieces: Mapping[str, str]) -> tuple[str, ...]:
    """Hash the rendered pieces, without the CSRF tokens of their forms: those differ each time."""
    return tuple(hash_of(CSRF.sub("", str(html))) for html in pieces.values())


def changed_parts(known: tuple[str, ...], pieces: Mapping[str, str]) -> dict[str, str]:
    """Return the parts whose hashes differ from `known`; all of them when their number differs."""
    marks = parts_of(pieces)
    known = known if len(known) == len(marks) else ("",) * len(marks)
    return {name: pieces[name] for name, old, new in zip(pieces, known, marks, strict=True) if old != new}


@dataclass(frozen=True, slots=True)
class Changes(Generic[Row]):
    """The changes that bring a shown list up to date.

    `new`: rows to insert, in order, each with the key of the row before it (None: none). `gone`: keys to remove.
    """

    changed: list[Row]
    new: list[tuple[Row, str | None]]
    gone: list[str]


def changes_of(
    known: Mapping[str, str],
    rows: Sequence[Row],
    key_of: Callable[[Row], str],
    mark_of: Callable[[Row], str] = lambda row: "",
    *,
    kept: Iterable[Row] = (),
    touched: Collection[str] = (),
) -> Changes[Row]:
    """Compare the rows that a browser shows (`known`) with the current `rows`, in order.

    `kept` are further rows that the browser may go on to show. Rows of the keys `touched` are sent even with the same
    hash: an edit undone at once looks as before, but not in a browser that has shown the edit. Compares rows, not times
    or a highest id: of two writers the lower id may arrive last.
    """
    present = {key_of(row): row for row in (*rows, *kept)}
    changed = [row for key, row in present.items() if key in known and (key in touched or known[key] != mark_of(row))]
    new: list[tuple[Row, str | None]] = []
    behind: str | None = None
    for row in rows:
        key = key_of(row)
        if key not in known:
            new.append((row, behind))
        behind = key
    return Changes(changed, new, [key for key in known if key not in present])
