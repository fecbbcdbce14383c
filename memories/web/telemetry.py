"""`/diagnostics`: the records of the pipeline's stages with their counts by day, `/diagnostics/{id}`: one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib import periods, times
from claudeops.lib.answers import page
from claudeops.lib.charts.bars import Bars, Kind, bars
from claudeops.lib.distinct import distinct_values
from claudeops.lib.list_view.columns import BuiltIn, Column
from claudeops.lib.list_view.histogram import edges_of, parts_of, range_since
from claudeops.lib.list_view.keyset import both
from claudeops.lib.list_view.view import ListView
from memories.models import RecordLevel, TelemetryRecord
from memories.queries.telemetry import COUNTED, SEARCHED, TelemetryFilterSet, levels_in_parts

SEES = "memories.view_telemetryrecord"
LEVELS = (
    Kind(RecordLevel.ERROR, "failed", "errors", "hatched"),
    Kind(RecordLevel.WARNING, "stopped", "warnings"),
    Kind(RecordLevel.INFO, "skipped", "info"),
)
LONGEST = 200
"""Characters of the counts in a row of the list."""
MOST_SUGGESTED = 40
ICONS = {RecordLevel.ERROR.value: "failed", RecordLevel.WARNING.value: "warning", RecordLevel.INFO.value: "ok"}


def in_short(metadata: object) -> str:
    """Write counts in one line: "allow 3, hold 1"; those that are 0 or empty are left out."""
    if not isinstance(metadata, dict):
        return ""
    text = ", ".join(f"{str(name).replace('_', ' ')} {value}" for name, value in metadata.items() if value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class ByDay:
    """The chart above the list. `cut`: it counts only the newest of the records (for people), "" when it has all."""

    range: periods.Range
    chart: Bars
    cut: str


class TelemetryList(ListView):
    name, heading, one = "telemetry", "Diagnostics", "record"
    template, row_template = "telemetry/list.html", "telemetry/_row.html"
    permission_required = SEES
    model, filterset = TelemetryRecord, TelemetryFilterSet
    searched = f"{SEARCHED:,}"
    fields = ("level", "success", "component", "source", "action", "during")
    example = "level:error component:observe action:memory.gate.*, or words"
    built_in = (
        BuiltIn("All", ""),
        BuiltIn("Errors", "level=error"),
        BuiltIn("Warnings", "level=warning"),
        BuiltIn("Failed", "success=no"),
        BuiltIn("Observing", "component=observe", counted=False),
    )
    columns = (
        Column("level", "Level", lambda row: row.level, fixed=True, bare=True),
        Column("action", "Action", lambda row: row.action, fixed=True),
        Column("counts", "Counts", lambda row: in_short(row.metadata)),
        Column("component", "Component", lambda row: row.component),
        Column("source", "Source", lambda row: row.source),
        Column("duration", "Duration", lambda row: row.duration_ms, number=True),
        Column("when", "When", lambda row: row.at, sort="when"),
    )
    sorts, first = both("when", "when", F("at"), "at", times.parse), "-when"

    def drawn(self, rows: Sequence[Any]) -> Sequence[Any]:
        for row in rows:
            row.icon, row.in_short = ICONS.get(row.level, "ok"), in_short(row.metadata)
        return rows

    def suggested(self) -> tuple[str, ...]:
        components = distinct_values(TelemetryRecord, "component")[:MOST_SUGGESTED]
        actions = distinct_values(TelemetryRecord, "action")[:MOST_SUGGESTED]
        return (
            *(f"level:{level}" for level in RecordLevel.values),
            *("success:no", "during:24h", "during:7d", "during:30d"),
            *(f"component:{name}" for name in components if " " not in name),
            *(f"action:{name}" for name in actions if " " not in name),
        )

    def extra(self) -> dict[str, Any]:
        return {"by_day": self._by_day() if self.is_readable and self.filters.is_valid() else None}

    def _by_day(self) -> ByDay:
        """Count what the filters match in the shortest range that holds their period; each bar leads to its records."""
        cleaned, now = self.filters.form.cleaned_data, timezone.now()
        since = cleaned["during"].since if cleaned["during"] else None
        one = range_since([since], periods.FIRST if since else "30d", now)
        edges = edges_of(one, now)
        numbers, is_cut = levels_in_parts(cleaned, edges)
        parts = parts_of(one, edges, numbers, reverse(self.name), self.query_without("during"), "during")
        chart = bars(f"Records by {one.part}, {one.words}", parts, LEVELS, height=60.0)
        return ByDay(one, chart, f"{COUNTED:,}" if is_cut else "")


@page(SEES)
def telemetry_record(request: HttpRequest, pk: int) -> HttpResponse:
    record = get_object_or_404(TelemetryRecord, pk=pk)
    metadata = record.metadata if isinstance(record.metadata, dict) else {}
    facts = [(str(name).replace("_", " "), value, _link(name, value)) for name, value in metadata.items()]
    context = {"record": record, "icon": ICONS.get(record.level, "ok"), "facts": facts, "address": request.path}
    return render(request, "telemetry/record.html", context)


def _link(name: str, value: object) -> str:
    """Return the address of the session or transcript that a record is about; "" for other metadata."""
    if name not in ("session", "transcript") or not isinstance(value, int) or isinstance(value, bool):
        return ""
    return reverse(name, args=[value]) if 0 < value < 2**63 else ""
