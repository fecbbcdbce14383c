"""Ids of selected rows as ranges, so that thousands fit into one form field. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

MOST_IDS = 20_000
"""Ids that may be selected one by one; a page shows at most a few hundred."""

RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def pack(ids: Iterable[int]) -> str:
    """Ids as ranges: "1-50,53,60-61". Sorted, each once."""
    parts = []
    for _, run in groupby(enumerate(sorted(set(ids))), lambda numbered: numbered[1] - numbered[0]):
        found = [pk for _, pk in run]
        parts.append(f"{found[0]}-{found[-1]}" if len(found) > 1 else f"{found[0]}")
    return ",".join(parts)


def unpack(text: str) -> list[int]:
    """The ids in what `pack` wrote. Raises ValueError for anything else, and for more than MOST_IDS."""
    ids: list[int] = []
    for part in filter(None, text.split(",")):
        found = RANGE.fullmatch(part)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not 0 <= high - low < MOST_IDS - len(ids):
            raise ValueError(f"{part[:40]!r} is no range of at most {MOST_IDS:,} ids.")
        ids.extend(range(low, high + 1))
    return ids
