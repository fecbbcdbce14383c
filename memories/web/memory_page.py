"""What the page of a memory shows: its band, its neighbours in a list, and the address of each of its lists."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from claudeops.lib import humanize
from claudeops.lib.detail_page import Band, Figure, Neighbour, Neighbours, headline
from claudeops.lib.list_view.keyset import Place, beyond, ordered
from memories.history.confidence_history import ConfidenceHistory
from memories.history.timeline import Kinds
from memories.models import Memory, Verdict
from memories.queries import list as listing
from memories.queries.filters import MemoryFilterSet
from memories.taxonomy import GENERAL, TAXONOMIES

TITLE = 300
"""Most characters of the title; the page shows a longer text below."""
LONGEST_QUERY = 2_000
"""Most characters of the list's query that an address hands on."""


def whole_text(memory: Memory) -> str:
    """Return the text when the title does not hold all of it."""
    return memory.observation if len(memory.observation) > TITLE else ""


def band_of(memory: Memory, course: ConfidenceHistory, kinds: Kinds) -> Band:
    state, icon, tone = _state(memory)
    return Band(
        title=headline(memory.observation, TITLE)[0] if whole_text(memory) else memory.observation,
        state=state,
        icon=icon,
        tone=tone,
        sentence=_sentence(memory, course),
        figures=(
            Figure("Confidence", f"{memory.confidence:.2f}", _threshold(memory), url="#course"),
            _counted(memory, kinds, "confirmed", course.now),
            _counted(memory, kinds, "contradicted", course.now),
            Figure("Service", memory.scope_label, url=_listed(service=memory.service or GENERAL)),
            Figure("Category", memory.category, memory.taxonomy, url=_listed(category=memory.category)),
        ),
    )


def _state(memory: Memory) -> tuple[str, str, str]:
    """Return the state in a word, its icon, and its tone."""
    if memory.verdict == Verdict.HOLD:
        return ("held", "held", "warn") if memory.awaits_review else ("rejected", "inactive", "")
    if not memory.active:
        return "inactive", "inactive", ""
    return ("unconfirmed", "held", "warn") if memory.unconfirmed else ("active", "ok", "ok")


def _sentence(memory: Memory, course: ConfidenceHistory) -> str:
    waits = "No session is told of it until it is confirmed. " if memory.unconfirmed else ""
    return waits + course.words


def _threshold(memory: Memory) -> str:
    below = TAXONOMIES[memory.taxonomy].inactive_below
    return "" if below is None else f"inactive below {below:.2f}"


def _counted(memory: Memory, kinds: Kinds, shape: str, now: datetime) -> Figure:
    count = kinds.counts.get(shape, 0)
    value = {0: "never", 1: "once"}.get(count, f"{count:,} times")
    last = humanize.ago(kinds.last[shape], now) if count else ""
    address = f"{reverse('memory', args=[memory.pk])}?only={shape}#timeline" if count else ""
    return Figure(shape.capitalize(), value, f"last {last}" if count > 1 else last, url=address)


def _listed(**filters: str) -> str:
    return f"{reverse('memories')}?{urlencode(filters)}"


def handed_on(request: HttpRequest) -> str:
    """Return the query of the list that the person came from; empty for none and for a long one."""
    query = request.GET.get("from", "")
    return query if len(query) <= LONGEST_QUERY else ""


def neighbours_of(memory: Memory, query: str) -> Neighbours:
    """Return the memories before and after `memory` in a list: that of `query`, or all in the usual order.

    Three queries, each for one row of the order's index, and one to find out whether the query matches few rows. A
    query that cannot be read is that of all memories.
    """
    given = QueryDict(query)
    filters = MemoryFilterSet(given, queryset=Memory.objects.all())
    readable = bool(query) and filters.is_valid()
    rows = Memory.objects.all()
    if readable:
        # Few ones by their ids, so that a search that no index serves reads the table once.
        few = listing.few_of(filters.qs)
        rows = filters.qs.order_by() if few is None else Memory.objects.filter(pk__in=few)
    sort = listing.SORTS.get(given.get("sort", "") if readable else "", listing.SORTS[listing.FIRST])
    order = f"in the list by “{sort.label}”" if query and readable else f"by “{sort.label}”"
    here = ordered(Memory.objects.filter(pk=memory.pk), sort).first()
    if here is None:
        return Neighbours(None, None, order)
    place = Place(sort.parse(sort.value(here)), here.pk)
    before = ordered(beyond(rows, sort, place, backwards=True), sort, backwards=True).first()
    after = ordered(beyond(rows, sort, place), sort).first()
    more = f"?{urlencode({'from': query})}" if query and readable else ""
    return Neighbours(_neighbour(before, more), _neighbour(after, more), order)


def _neighbour(row: Memory | None, more: str) -> Neighbour | None:
    return Neighbour(f"{row.pk}", reverse("memory", args=[row.pk]) + more) if row else None
