"""`/memories`: the list with its filters, order and pages, its poll, and adding a memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from claudeops.lib import capped
from claudeops.lib.answers import actor, moved, page
from claudeops.lib.change_token import ChangeToken, hash_of
from claudeops.lib.charts.sparkline import sparkline
from claudeops.lib.distinct import distinct_values
from claudeops.lib.domain_error import DomainError
from claudeops.lib.list_view.columns import Action, BuiltIn, Column
from claudeops.lib.list_view.view import ListView
from claudeops.lib.masked import masked_note
from memories import store
from memories.history.confidence import confidence_since
from memories.history.forecast import forecast
from memories.injection.windows import DAYS, upcoming, usable
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Memory, Source, Trust
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.queries import list as listing
from memories.queries.filters import CATEGORIES, STATUSES, MemoryFilterSet
from memories.taxonomy import GENERAL
from memories.web.forms import AddForm

VIEW, CHANGE, DELETE = "memories.view_memory", "memories.change_memory", "memories.delete_memory"
KEYS = {"approve": "a", "reject": "r", "confirm": "c", "deactivate": "d"}
IN_REACH = (*KEYS, "reassign")
"""Bulk actions with a button of their own; the others stand behind "…"."""
FACETS = 6
LINE = timedelta(days=30)
"""How far back the small line of a memory's confidence goes."""


def fades_at(memory: Memory) -> datetime | None:
    return forecast(memory, timezone.now()).inactive_at


class MemoryList(ListView):
    name, heading, one, many = "memories", "Memories", "memory", "memories"
    template, row_template = "memories/list.html", "memories/_row.html"
    permission_required = VIEW
    model, filterset = Memory, MemoryFilterSet
    fields: tuple[str, ...] = (
        "service",
        "status",
        "fades",
        "category",
        "told",
        "confidence_min",
        "confidence_max",
        "source",
    )
    example = "service:jellyfin fades:<14d told:>5, or words"
    built_in: tuple[BuiltIn, ...] = (
        BuiltIn("All", ""),
        BuiltIn("Fades next", "fades=%3C14d&sort=fades"),
        BuiltIn("Held", "status=held"),
        BuiltIn("Never told", "status=active&told=0"),
        BuiltIn("Contradicted", "status=contradicted"),
        BuiltIn("Inactive", "status=inactive"),
    )
    columns: tuple[Column, ...] = (
        Column("status", "Status", listing.status_of, fixed=True, bare=True),
        Column("text", "Text", lambda memory: memory.observation, fixed=True),
        Column("service", "Service", lambda memory: memory.service, sort="service", rising=True),
        Column("category", "Category", lambda memory: memory.category),
        Column("confidence", "Confidence, 30 d", lambda memory: memory.confidence, sort="confidence", number=True),
        Column("fades", "Fades", fades_at, sort="fades", rising=True),
        Column("told", "Told", lambda memory: memory.told_count, sort="told", number=True),
        Column("confirmed", "Confirmed", lambda memory: memory.updated_at, sort="updated"),
        Column("source", "From", lambda memory: memory.session_id or memory.get_source_display()),
        Column("why", "Why", listing.why_of, shown=False),
        Column("exposure", "Read before", lambda memory: memory.get_exposure_display(), shown=False),
        Column("trust", "Trusted as", lambda memory: memory.get_trust_display(), shown=False),
        Column("project", "Project", lambda memory: memory.project and memory.project.slug, shown=False),
        Column("taxonomy", "Taxonomy", lambda memory: memory.taxonomy, shown=False),
        Column("tier", "Tier", lambda memory: memory.tier, shown=False, number=True),
    )
    sorts, first = listing.SORTS, listing.FIRST
    actions = (
        *(
            Action(
                action.name,
                action.label,
                DELETE if action.name == "delete" else CHANGE,
                key=KEYS.get(action.name, ""),
                asks=bool(action.confirm or action.params),
                bad=action.name == "delete",
                folded=action.name not in IN_REACH,
            )
            for action in BULK_ACTIONS.values()
        ),
        Action("export", "Export as JSON lines", VIEW, folded=True),
        Action(
            *("purge", "Forget everywhere", "sessions_app.purge_memory"), asks=True, bad=True, folded=True, url="purges"
        ),
    )
    row_acts: tuple[str, ...] = (CHANGE, DELETE)
    counts_page = polled = keeps_rows = True

    def listed(self, rows: QuerySet[Memory]) -> QuerySet[Memory]:
        return listing.listed(rows)

    @cached_property
    def few(self) -> list[int] | None:
        """The ids of all that match a narrowed list, so that the table is scanned once; None for many."""
        return listing.few_of(self.matches) if self.narrowed else None

    @property
    def page_source(self) -> QuerySet[Memory]:
        return self.matches if self.few is None else Memory.objects.filter(pk__in=self.few)

    @cached_property
    def count(self) -> capped.Count:
        return capped.count_of(self.matches) if self.few is None else capped.Count(len(self.few))

    def drawn(self, rows: Sequence[Memory]) -> Sequence[Memory]:
        """Give each memory the line of its confidence (`spark`) where the column is shown. One query for all."""
        if "confidence" not in self.shown or not rows:
            return rows
        now = timezone.now()
        start = now - LINE
        for memory, past in zip(rows, confidence_since(rows, start).values(), strict=True):
            points = [(point.at, point.confidence) for point in past]
            began = next((value for at, value in reversed(points) if at <= start), points[0][1])
            label = f"{memory.confidence:.2f}; {LINE.days} days ago or at first {began:.2f}"
            memory.spark = sparkline(points, start, now, said=label)  # type: ignore[attr-defined]
        return rows

    @cached_property
    def state(self) -> str:
        return str(listing.latest_change())

    def mark(self, row: Memory) -> str:
        return hash_of([getattr(row, name) for name in listing.COLUMNS])

    def touched(self, seen: ChangeToken, known: Sequence[int]) -> set[str]:
        """Return what was changed since: an edit undone at once looks as before, but not where the edit is shown."""
        since = seen.state
        is_change = since.isdecimal() and len(since) < 19
        return {str(pk) for pk in listing.touched_since(int(since), known)} if is_change else set()

    def polls(self) -> bool:
        return True

    def rows_extra(self) -> dict[str, Any]:
        return {"handed_on": f"?{urlencode({'from': self.query})}" if self.query else ""}

    @cached_property
    def services(self) -> list[str]:
        return [*distinct_values(Memory, "service"), GENERAL]

    def suggested(self) -> Sequence[str]:
        return (
            *("fades:<7d", "fades:<14d", "fades:<30d", "told:0", "told:>5"),
            *(f"status:{name}" for name, _ in STATUSES),
            *(f"trust:{name}" for name in Trust.values),
            *(f"category:{name}" for name in CATEGORIES),
            *(f"service:{name}" for name in self.services),
        )

    def extra(self) -> dict[str, Any]:
        return {"form": AddForm(), "services": self.services, "facets": self._facets()}

    def _facets(self) -> list[dict[str, Any]]:
        """Return the services with most of the matches, to narrow the list to; none for a long or a narrowed list."""
        if self.request.GET.get("service") or not self.rows or self.count.value > listing.FEW:
            return []
        counted = self.page_source.values("service").annotate(count=Count("pk")).order_by("-count", "service")
        facets = [(row["service"] or GENERAL, row["count"]) for row in counted[:FACETS]]
        rest = f"{self.query}&" if self.query else ""
        return [{"label": name, "count": count, "query": rest + urlencode({"service": name})} for name, count in facets]

    def post(self, request: HttpRequest) -> HttpResponse:
        """Add a memory as the word of the person who typed it."""
        if not request.user.has_perm("memories.add_memory"):
            raise PermissionDenied
        form = AddForm(request.POST)
        if not form.is_valid():
            return self.response(form=form, status=422)
        cleaned = form.cleaned_data
        statement = store.Statement(
            category=cleaned["category"],
            text=cleaned["observation"],
            service=cleaned["service"],
            taxonomy=cleaned["taxonomy"] or "ops",
            confidence=cleaned["confidence"],
            surface=cleaned["surface"],
        )
        provenance = store.Provenance(source=Source.HUMAN, actor=actor(request), channel="human")
        try:
            result = store.remember(statement, provenance)
        except DomainError as error:
            form.add_error("observation", str(error))
            return self.response(form=form, status=422)
        note = masked_note(request.POST.get("observation", ""))
        address = reverse("memory", args=[result.memory_id])
        added = format_html('<a href="{}">Memory {}</a> is added.{}', address, result.memory_id, note)
        return moved(request, reverse("memories"), added)


def row_context(request: HttpRequest, memory: Memory) -> dict[str, Any]:
    """Return the context of one row, with the columns that the person has chosen."""
    page = MemoryList.of(request)
    return {"row": page.drawn([memory])[0], "memory": memory, "shown": dict.fromkeys(page.shown, True)}


MOST = 200


@page("memories.view_memory")
def timed(request: HttpRequest) -> HttpResponse:
    entries = upcoming(usable(ANY_PROJECT, ANY_AGENT).select_related("project"), timezone.now(), days=DAYS)
    context = {"rows": entries[:MOST], "more": max(0, len(entries) - MOST), "days": DAYS}
    return render(request, "memories/timed.html", context)
