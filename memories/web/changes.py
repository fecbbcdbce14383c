"""What a page of memories shows already, as a short text: told back by the browser, so that only news is sent.

Two steps: the id of the last change of any memory says in one look whether anything happened at all (every change
has its row, and rows are written one writer at a time); the marks of the rows say what that means for this page.
Pure: rows in, texts out.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from memories.models import Memory
from memories.queries.list import COLUMNS

BETWEEN, WITHIN = "-", "."
LONGEST = 6000
"""Characters of what a page says it shows: 250 rows."""


def mark(memory: Memory) -> str:
    """Eight characters that change with what the list shows of `memory`."""
    shown = [getattr(memory, name) for name in COLUMNS]
    return f"{zlib.crc32(repr(shown).encode()):08x}"


def token(memories: Iterable[Memory]) -> str:
    """The rows of a page in order, each with its mark."""
    return BETWEEN.join(f"{memory.pk}{WITHIN}{mark(memory)}" for memory in memories)


def read(text: str) -> dict[int, str]:
    """The marks of a token by the memory's id; what is none is left out."""
    found: dict[int, str] = {}
    for part in text.split(BETWEEN):
        number, _, value = part.partition(WITHIN)
        if number.isdecimal() and len(number) < 19:
            found[int(number)] = value
    return found


@dataclass(frozen=True, slots=True)
class News:
    """What has to be done to a page that shows `known` so that it shows `rows`.

    `new` are rows to be put in, in order, each with the id of the row it stands behind (None: the first). A row that
    was only pushed off the end of the page stays: it may be selected.
    """

    changed: list[Memory]
    new: list[tuple[Memory, int | None]]
    gone: list[int]


def news(
    known: dict[int, str], rows: Sequence[Memory], pushed_off: Sequence[Memory], touched: Collection[int] = ()
) -> News:
    """`rows` are the page as it is now, `pushed_off` what the browser shows besides and still matches.

    `touched` are the ids of what changed since: an edit that was undone at once looks as it did, but not in the
    browser that has shown the edit.
    """
    changed = [
        row for row in (*rows, *pushed_off) if row.pk in known and (row.pk in touched or known[row.pk] != mark(row))
    ]
    new: list[tuple[Memory, int | None]] = []
    before: int | None = None
    for row in rows:
        if row.pk not in known:
            new.append((row, before))
        before = row.pk
    there = {row.pk for row in (*rows, *pushed_off)}
    return News(changed, new, [pk for pk in known if pk not in there])
