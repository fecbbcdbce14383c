"""The chart above a list: the parts of the range that a period needs, each of which leads to its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from urllib.parse import urlencode

from django.utils import timezone

from claudeops.lib import local_time, periods
from claudeops.lib.charts.bars import Part
from claudeops.lib.periods import RANGES, Range


def edges_of(one: Range, now: datetime) -> tuple[datetime, ...]:
    """Return where the parts of a range begin and the last one ends (UTC), in days of the active zone."""
    return periods.edges_of(one, now, timezone.get_current_timezone())


def range_since(starts: Iterable[datetime | None], shortest: str, now: datetime) -> Range:
    """Return the shortest range, at least that of this name, in which all `starts` lie; else the longest."""
    begun = [start for start in starts if start]
    longer = (one for one in RANGES.values() if one.length >= RANGES[shortest].length)
    fits = (one for one in longer if all(edges_of(one, now)[0] <= start for start in begun))
    return next(fits, RANGES["90d"])


def parts_of(
    one: Range, edges: Sequence[datetime], numbers: Iterable[Counter[str]], address: str, query: str, period: str
) -> list[Part]:
    """Return the parts of a range with their `numbers`: each leads to its rows, by the filter `period`."""
    base = f"{address}?{query}{'&' if query else ''}"
    return [
        Part(
            local_time.label_of_part(one, since),
            local_time.words_of_part(one, since, until),
            base + urlencode({period: span}, safe=":"),
            counted,
            span,
        )
        for (since, until), counted in zip(pairwise(edges), numbers, strict=True)
        for span in [periods.write(since, until)]
    ]
