"""`/library/decisions`: the decision records of all projects, and the page of one with what it governs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from claudeops.lib.answers import page
from claudeops.lib.charts.successions import Drawing, draw
from claudeops.lib.detail_page import Neighbour, Neighbours
from claudeops.lib.list_view.columns import BuiltIn, Column
from claudeops.lib.list_view.keyset import both, whole_to
from claudeops.lib.list_view.view import ListView
from claudeops.lib.tracked_file.document import FRONT, Document
from memories.library.decisions.filters import DecisionFilterSet
from memories.library.decisions.record import HOLDS, REJECTED, STATUSES, SUPERSEDED, successor_of
from memories.models import Decision, Project

SEES = "memories.view_decision"
ORDER = "-number"
SORTS = both("number", "number", Coalesce(F("number"), 0), "number_or_0", whole_to(2**31), computed=True)


class DecisionRecords(ListView):
    name, heading, one, many = "decision-records", "Decisions", "decision", "decisions"
    template, row_template = "library/decisions.html", "library/_decision_row.html"
    permission_required = SEES
    model, filterset = Decision, DecisionFilterSet
    fields = ("project", "status", "path", "tag", "problem")
    example = "project:shop status:accepted path:src/payments, or words"
    built_in = (
        BuiltIn("All", ""),
        BuiltIn("Accepted", "status=accepted"),
        BuiltIn("Proposed", "status=proposed"),
        BuiltIn("Something is wrong", "problem=true"),
    )
    columns = (
        Column("number", "Number", lambda row: row.key, sort="number", fixed=True),
        Column("title", "Title", lambda row: row.title, fixed=True),
        Column("status", "Status", lambda row: row.status, fixed=True),
        Column("project", "Project", lambda row: row.project.slug),
        Column("day", "Date", lambda row: row.day),
        Column("paths", "Governs", lambda row: ", ".join(map(str, row.paths))),
    )
    sorts, first = SORTS, ORDER

    def all_rows(self) -> QuerySet[Any]:
        return super().all_rows().select_related("project").defer("text")

    def suggested(self) -> tuple[str, ...]:
        projects = Project.objects.filter(decisions__isnull=False).distinct().values_list("slug", flat=True)[:20]
        return (*(f"project:{slug}" for slug in projects), *(f"status:{one}" for one in STATUSES), "problem:true")

    def extra(self) -> dict[str, Any]:
        first = Decision.objects.exclude(superseded_by=[]).values_list("project__slug", flat=True).first()
        drawn = self.request.GET.get("project") or first or ""
        return {"drawing": drawing_of(Decision.objects.filter(project__slug=drawn)), "drawn": drawn}


def drawing_of(rows: QuerySet[Decision], only: str = "") -> Drawing:
    """Draw what superseded what among the decisions of one project."""
    found = list(rows.select_related("project").defer("text"))
    edges = {(row.key, str(after)) for row in found for after in row.superseded_by}
    edges |= {(str(before), row.key) for row in found for before in row.supersedes}
    return draw(
        {row.key: (f"{row.key} {row.title}", address_of(row), level_of(row)) for row in found}, edges, only=only
    )


def address_of(row: Decision) -> str:
    return reverse("decision-record", args=[row.project.slug, row.name])


def level_of(row: Decision) -> str:
    """Return the name of the icon and colour of a status."""
    if row.problems:
        return "warning"
    return "ok" if row.status in HOLDS else "inactive" if row.status in (SUPERSEDED, REJECTED) else "proposal"


@page(SEES)
def decision(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    row = get_object_or_404(Decision.objects.select_related("project"), project__slug=slug, name=name)
    rows = Decision.objects.filter(project=row.project)
    by_key = {one.key: one for one in rows.select_related("project").defer("text").order_by("number", "name")}
    context = {
        "decision": row,
        "level": level_of(row),
        "holds": row.status in HOLDS,
        "instead": successor_of(row, by_key) if row.status not in HOLDS else None,
        "text": body_of(row.text),
        "linked": [
            *_linked("Supersedes", row.supersedes, by_key),
            *_linked("Superseded by", row.superseded_by, by_key),
        ],
        "drawing": drawing_of(rows, row.key),
        "address": address_of(row),
        "neighbours": _neighbours(row, list(by_key.values())),
    }
    return render(request, "library/decision.html", context)


def _neighbours(row: Decision, rows: Sequence[Decision]) -> Neighbours:
    """Return the records before and after one, by number, among those of its project."""
    place = next((at for at, one in enumerate(rows) if one.pk == row.pk), 0)
    before, after = rows[place - 1 : place] if place else [], rows[place + 1 : place + 2]
    beside = [next((Neighbour(one.key[:20], address_of(one)) for one in side), None) for side in (before, after)]
    return Neighbours(beside[0], beside[1], "by number")


def body_of(text: str) -> str:
    """Return a record's Markdown without its front matter and its title, which the page shows itself."""
    document = Document.read(text)
    top = next((one.at for one in document.headings if one.level == 1), None)
    return "\n".join(
        line for at, (line, _) in enumerate(document.lines) if at != top and document.classes[at] != FRONT
    ).strip()


def _linked(words: str, keys: Iterable[object], by_key: dict[str, Decision]) -> list[tuple[str, str, Decision | None]]:
    return [(words, str(key), by_key.get(str(key))) for key in keys]
