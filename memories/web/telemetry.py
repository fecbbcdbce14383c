"""`/telemetry`: the records of the pipeline's stages with their counts by day, `/telemetry/{id}`: one of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.db.models import F
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from claudeops.lib import local_time, periods
from claudeops.lib.capped import Count, count_of
from claudeops.lib.charts.bars import Bars, Kind, Part, bars
from claudeops.lib.distinct import distinct_values
from claudeops.lib.list_page.bar import View
from claudeops.lib.list_page.columns import Column
from claudeops.lib.list_page.export import FORMATS, MOST
from claudeops.lib.list_page.keyset import both, moment, ordered, page_of
from claudeops.lib.list_page.page import ListPage, declare
from memories.models import RecordLevel, TelemetryRecord
from memories.queries.telemetry import COUNTED, SEARCHED, TelemetryFilterSet, levels_in_parts

SEES = "memories.view_telemetryrecord"
SORTS = {sort.key: sort for sort in both("when", "when", F("at"), "at", moment)}
LEVELS = (
    Kind(RecordLevel.ERROR, "failed", "errors", "hatched"),
    Kind(RecordLevel.WARNING, "stopped", "warnings"),
    Kind(RecordLevel.INFO, "skipped", "info"),
)
LONGEST = 200
"""Characters of the counts in a row of the list."""
MOST_SUGGESTED = 40

PAGE = declare(
    ListPage(
        TelemetryFilterSet,
        TelemetryRecord.objects.all,
        views=(
            View("All", ""),
            View("Errors", "level=error"),
            View("Warnings", "level=warning"),
            View("Failed", "success=no"),
            View("Observing", "component=observe", counted=False),
        ),
        example="level:error component:observe action:memory.gate.*, or words",
        shown=("level", "success", "component", "source", "action", "during"),
        name="telemetry",
        permission=SEES,
        columns=(
            Column("level", "Level", lambda row: row.level, fixed=True, bare=True),
            Column("action", "Action", lambda row: row.action, fixed=True),
            Column("counts", "Counts", lambda row: in_short(row.metadata)),
            Column("component", "Component", lambda row: row.component),
            Column("source", "Source", lambda row: row.source),
            Column("duration", "Duration", lambda row: row.duration_ms, number=True),
            Column("when", "When", lambda row: row.at, sort="when"),
        ),
        sorts=SORTS,
        first="-when",
    )
)


def in_short(metadata: object) -> str:
    """Write counts in one line: "allow 3, hold 1"; those that are 0 or empty are left out."""
    if not isinstance(metadata, dict):
        return ""
    said = ", ".join(f"{str(name).replace('_', ' ')} {value}" for name, value in metadata.items() if value)
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class Row:
    """A record in the list. `icon` is a name of templates/_icons.html."""

    record: TelemetryRecord
    icon: str
    counts: str

    @classmethod
    def of(cls, record: TelemetryRecord) -> Row:
        return cls(record, _icon(record), in_short(record.metadata))


def _icon(record: TelemetryRecord) -> str:
    return {RecordLevel.ERROR.value: "failed", RecordLevel.WARNING.value: "warning"}.get(record.level, "ok")


@dataclass(frozen=True, slots=True)
class ByDay:
    """The chart above the list. `cut`: it counts only the newest of the records (for people), "" when it has all."""

    range: periods.Range
    chart: Bars
    cut: str


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def telemetry(request: HttpRequest) -> HttpResponseBase:
    filters = TelemetryFilterSet(request.GET, queryset=TelemetryRecord.objects.all())
    readable = filters.is_valid() and not PAGE.errors(request)
    rows = filters.qs if readable else TelemetryRecord.objects.none()
    sort, after, before = PAGE.place(request)
    chosen = PAGE.chosen(request)
    if request.GET.get("format") in FORMATS:
        return PAGE.export(request.GET["format"], chosen.shown, ordered(rows, sort))
    if away := PAGE.redirect(request):
        return away
    page = page_of(rows, sort, chosen.size, after=after, before=before)
    count = count_of(rows) if page.further or page.back else Count(len(page.rows))
    context = {
        **PAGE.list_context(request, sort, chosen),
        **PAGE.context(request, filters, _suggested(), chosen=chosen),
        "heading": "Telemetry",
        "list_id": "telemetry",
        "one_of_them": "record",
        "filters": filters,
        "page": page,
        "rows": [Row.of(row) for row in page.rows],
        "count": count,
        "searched": SEARCHED if request.GET.get(PAGE.text) else None,
        "export_most": f"{MOST:,}",
        "by_day": _by_day(request, filters) if readable else None,
    }
    return render(request, "memories/telemetry.html", context)


@require_safe
@never_cache
@permission_required(SEES, raise_exception=True)
def telemetry_record(request: HttpRequest, pk: int) -> HttpResponse:
    record = get_object_or_404(TelemetryRecord, pk=pk)
    metadata = record.metadata if isinstance(record.metadata, dict) else {}
    facts = [(str(name).replace("_", " "), value, _link(name, value)) for name, value in metadata.items()]
    context = {"record": record, "icon": _icon(record), "facts": facts, "address": request.path}
    return render(request, "memories/telemetry_record.html", context)


def _link(name: str, value: object) -> str:
    """Return the address of the session or transcript that a record is about; "" for other metadata."""
    if name not in ("session", "transcript") or not isinstance(value, int) or isinstance(value, bool):
        return ""
    return reverse(name, args=[value]) if 0 < value < 2**63 else ""


def _suggested() -> tuple[str, ...]:
    components = distinct_values(TelemetryRecord, "component")[:MOST_SUGGESTED]
    actions = distinct_values(TelemetryRecord, "action")[:MOST_SUGGESTED]
    return (
        *(f"level:{level}" for level in RecordLevel.values),
        *("success:no", "during:24h", "during:7d", "during:30d"),
        *(f"component:{name}" for name in components if " " not in name),
        *(f"action:{name}" for name in actions if " " not in name),
    )


def _by_day(request: HttpRequest, filters: TelemetryFilterSet) -> ByDay:
    """Count what the filters match in the shortest range that holds their period; each bar leads to its records."""
    given: dict[str, Any] = filters.form.cleaned_data
    now, zone = timezone.now(), timezone.get_current_timezone()
    period = given["during"]
    since = period.since if period and period.since else None
    shortest = periods.RANGES["30d"] if since is None else periods.RANGES[periods.FIRST]
    longer = (one for one in periods.RANGES.values() if one.length >= shortest.length)
    fits = (one for one in longer if since is None or periods.edges_of(one, now, zone)[0] <= since)
    one = next(fits, periods.RANGES["90d"])
    edges = periods.edges_of(one, now, zone)
    numbers, is_cut = levels_in_parts(given, edges)
    rest = request.GET.copy()
    for name in ("during", "after", "before", "q"):
        rest.pop(name, None)
    base = f"{reverse('telemetry')}?{rest.urlencode()}{'&' if rest else ''}"
    parts = [
        Part(
            local_time.label_of_part(one, begin),
            local_time.words_of_part(one, begin, end),
            base + urlencode({"during": periods.write(begin, end)}, safe=":"),
            counted,
        )
        for (begin, end), counted in zip(pairwise(edges), numbers, strict=True)
    ]
    chart = bars(f"Records by {one.part}, {one.words}", parts, LEVELS, height=60.0)
    return ByDay(one, chart, f"{COUNTED:,}" if is_cut else "")
