"""Change tokens: what a page shows, as a short text that the browser sends back with each poll.

The server compares the token with what there is now and answers 204 when nothing changed, else only the changes. A
token has three sections, each may be empty: a state (a hash of a few values that are cheap to read and change with the
page), a hash of each rendered part, and the rows in order, each with a hash of what is shown of it.
Pure: values in, texts out; knows no model and no request.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

SECTIONS, BETWEEN, WITHIN = "~", "-", "."
LONGEST = 8000
"""Characters of a token that are read: 250 rows."""

Row = TypeVar("Row")


def hash_of(value: Any) -> str:
    """Eight characters that change with the value's `repr`."""
    return f"{zlib.crc32(repr(value).encode()):08x}"


@dataclass(frozen=True, slots=True)
class ChangeToken:
    """What a browser shows. `rows` maps the key of each row to its hash; rows that never change have an empty one."""

    state: str = ""
    parts: tuple[str, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = BETWEEN.join(f"{key}{WITHIN}{mark}" if mark else key for key, mark in self.rows.items())
        return SECTIONS.join((self.state, BETWEEN.join(self.parts), rows)).rstrip(SECTIONS)


def read_token(text: str) -> ChangeToken:
    """The token in `text`. Whatever is no token reads as one that nothing there is equal to."""
    state, parts, rows = [*text[:LONGEST].split(SECTIONS), "", ""][:3]
    pairs = (part.partition(WITHIN) for part in rows.split(BETWEEN) if part)
    known = {key: mark for key, _, mark in pairs if key.isascii() and key.isalnum() and len(key) < 20}
    return ChangeToken(state, tuple(parts.split(BETWEEN)) if parts else (), known)


def parts_of(pieces: Mapping[str, str]) -> tuple[str, ...]:
    """The hashes of rendered parts, in their order."""
    return tuple(hash_of(str(html)) for html in pieces.values())


def changed_parts(known: tuple[str, ...], pieces: Mapping[str, str]) -> dict[str, str]:
    """The parts that a browser with the hashes `known` does not show; all of them when it shows other parts."""
    marks = parts_of(pieces)
    known = known if len(known) == len(marks) else ("",) * len(marks)
    return {name: pieces[name] for name, old, new in zip(pieces, known, marks, strict=True) if old != new}


@dataclass(frozen=True, slots=True)
class Changes(Generic[Row]):
    """What to do to a list so that it shows what there is now.

    `new` are rows to insert, in order, each with the key of the row it stands behind (None: it is the first); `gone`
    are the keys of rows to remove.
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
    """The difference between the rows a browser shows (`known`) and `rows`, which are there now, in order.

    `kept` are rows that the browser shows besides and may go on to show. The rows of the keys `touched` are sent even
    when their hash is the same: an edit that was taken back at once looks as before, but not in a browser that has
    shown the edit. Decided by the rows themselves, not by a time or a highest id: of two writers the lower id may
    arrive last.
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
