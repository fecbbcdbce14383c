"""`/memories/changes`: the list of what happened to memories, with its filters and pages, and its export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import F, QuerySet

from claudeops.lib import times
from claudeops.lib.list_view.columns import BuiltIn, Column
from claudeops.lib.list_view.keyset import both
from claudeops.lib.list_view.view import ListView
from memories.history.sentences import confidences, plain, sentence
from memories.history.timeline import shape_of
from memories.models import By, Listed, MemoryChange
from memories.queries.filters import SEARCHED, MemoryChangeFilterSet

SHOWN = (
    *("id", "memory_id", "kind", "at", "before", "after", "reason", "evidence", "actor", "session_id", "listed_as"),
    *("memory__id", "memory__observation", "memory__service"),
)


def text_of(change: MemoryChange) -> str:
    """Return the text of the changed memory: as it is, or as the change has it when the memory is deleted."""
    if change.memory is not None:
        return change.memory.observation
    for columns in (change.after, change.before):
        if isinstance(columns, dict) and columns.get("observation"):
            return str(columns["observation"])
    return ""


class ChangeList(ListView):
    name, heading, one = "memory-changes", "Changes of memories", "change"
    template, row_template = "changes/list.html", "changes/_row.html"
    permission_required = "memories.view_memory"
    model, filterset = MemoryChange, MemoryChangeFilterSet
    searched, searching = f"{SEARCHED:,}", ("text", "service")
    fields = ("kind", "by", "service", "during")
    example = "kind:confirmed by:people during:7d, or words"
    # Not counted: SQLite counts by a computed column row by row.
    built_in = (
        BuiltIn("All", ""),
        BuiltIn("Learned", "kind=learned", counted=False),
        BuiltIn("Confirmed", "kind=confirmed", counted=False),
        BuiltIn("Contradicted", "kind=contradicted", counted=False),
        BuiltIn("Faded", "kind=faded", counted=False),
        BuiltIn("By people", "by=people", counted=False),
    )
    columns = (
        Column("kind", "Change", lambda change: change.listed_as, fixed=True, bare=True),
        Column("what", "What happened", lambda change: plain(sentence(change)), fixed=True),
        Column("memory", "Memory", text_of),
        Column("service", "Service", lambda change: change.memory.service if change.memory else None, shown=False),
        Column("by", "By", lambda change: change.session_id or change.actor),
        Column("before", "Confidence before", lambda change: confidences(change)[0], shown=False, number=True),
        Column("confidence", "Confidence", lambda change: confidences(change)[1], number=True),
        Column("when", "When", lambda change: change.at, sort="when"),
    )
    sorts, first = both("when", "when", F("at"), "at", times.parse), "-when"

    def listed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.select_related("memory").only(*SHOWN)

    def drawn(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Give each change its sentence, its mark's shape, its memory's text, and the confidence where it changed."""
        for row in rows:
            row.sentence, row.shape, row.text = sentence(row), shape_of(row.kind), text_of(row)
            row.confidence_before, row.confidence_after = confidences(row)
        return rows

    def suggested(self) -> tuple[str, ...]:
        return (
            *(f"kind:{kind}" for kind in Listed.values),
            *(f"by:{whom}" for whom in By.values),
            *("during:24h", "during:7d", "during:30d"),
        )
