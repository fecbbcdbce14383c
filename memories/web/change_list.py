"""`/memories/changes`: the list of what happened to memories, with its filters and pages, and its export."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import permission_required
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.lib.capped import Count, count_of
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import Column
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import both, moment, ordered, page_of
from claudeops.lib.list_page.page import ListPage, declare
from memories.history.sentences import Part, confidences, plain, sentence
from memories.history.timeline import shape_of
from memories.models import By, Listed, MemoryChange
from memories.queries.filters import SEARCHED, MemoryChangeFilterSet

SORTS = {sort.key: sort for sort in both("when", "when", F("at"), "at", moment)}


def text_of(change: MemoryChange) -> str:
    """Return the text of the changed memory: as it is, or as the change has it when the memory is deleted."""
    if change.memory is not None:
        return change.memory.observation
    for columns in (change.after, change.before):
        if isinstance(columns, dict) and columns.get("observation"):
            return str(columns["observation"])
    return ""


@dataclass(frozen=True, slots=True)
class Row:
    """One change as its row shows it. `before` and `after` are the confidence, None where it was not changed."""

    change: MemoryChange
    kind: str
    shape: str
    sentence: tuple[Part, ...]
    text: str
    before: float | None
    after: float | None

    @property
    def pk(self) -> int:
        return self.change.pk


PAGE = declare(
    ListPage(
        MemoryChangeFilterSet,
        MemoryChange.objects.all,
        # Not counted: SQLite counts by a computed column row by row.
        views=(
            View("All", ""),
            View("Learned", "kind=learned", counted=False),
            View("Confirmed", "kind=confirmed", counted=False),
            View("Contradicted", "kind=contradicted", counted=False),
            View("Faded", "kind=faded", counted=False),
            View("By people", "by=people", counted=False),
        ),
        example="kind:confirmed by:people during:7d, or words",
        shown=("kind", "by", "service", "during"),
        name="memory-changes",
        permission="memories.view_memory",
        columns=(
            Column("kind", "Change", lambda change: change.listed_as, fixed=True, bare=True),
            Column("what", "What happened", lambda change: plain(sentence(change)), fixed=True),
            Column("memory", "Memory", text_of),
            Column("service", "Service", lambda change: change.memory.service if change.memory else None, shown=False),
            Column("by", "By", lambda change: change.session_id or change.actor),
            Column("before", "Confidence before", lambda change: confidences(change)[0], shown=False, number=True),
            Column("confidence", "Confidence", lambda change: confidences(change)[1], number=True),
            Column("when", "When", lambda change: change.at, sort="when"),
        ),
        sorts=SORTS,
        first="-when",
    )
)

COLUMNS = (
    *("id", "memory_id", "kind", "at", "before", "after", "reason", "evidence", "actor", "session_id", "listed_as"),
    *("memory__id", "memory__observation", "memory__service"),
)
SUGGESTED = (
    *(f"kind:{kind}" for kind in Listed.values),
    *(f"by:{whom}" for whom in By.values),
    *("during:24h", "during:7d", "during:30d"),
)


def _matching(request: HttpRequest) -> tuple[MemoryChangeFilterSet, QuerySet[MemoryChange]]:
    """Return the filters and all matches with what a row shows; none when the filters are invalid."""
    filters = MemoryChangeFilterSet(request.GET, queryset=MemoryChange.objects.all())
    rows = filters.qs if filters.is_valid() and not PAGE.errors(request) else MemoryChange.objects.none()
    return filters, rows


def _shown(rows: QuerySet[MemoryChange]) -> QuerySet[MemoryChange]:
    return rows.select_related("memory").only(*COLUMNS)


def _row(change: MemoryChange) -> Row:
    before, after = confidences(change)
    return Row(change, change.listed_label, shape_of(change.kind), sentence(change), text_of(change), before, after)


@require_safe
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def changes(request: HttpRequest) -> HttpResponseBase:
    filters, rows = _matching(request)
    sort, after, before = PAGE.place(request)
    chosen = PAGE.chosen(request)
    if request.GET.get("format") in FORMATS:
        return PAGE.export(request.GET["format"], chosen.shown, ordered(_shown(rows), sort))
    if away := PAGE.redirect(request):
        return away
    page = page_of(_shown(rows), sort, chosen.size, after=after, before=before)
    count = count_of(rows) if page.further or page.back else Count(len(page.rows))
    context = {
        **PAGE.list_context(request, sort, chosen),
        **PAGE.context(request, filters, SUGGESTED, chosen=chosen),
        "heading": "Changes of memories",
        "list_id": "memory-changes",
        "one_of_them": "change",
        "filters": filters,
        "page": page,
        "rows": [_row(change) for change in page.rows],
        "count": count,
        "searched": SEARCHED if request.GET.get(PAGE.text) or request.GET.get("service") else None,
        "export_most": f"{MOST:,}",
    }
    return render(request, "memories/changes.html", context)
