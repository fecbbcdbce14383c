"""`/diagnostics/decisions`: what the gate and the triage decided over time, by agent and by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.answers import page
from claudeops.lib.charts.bars import Bars, Kind, bars
from claudeops.lib.list_view.histogram import edges_of, parts_of
from claudeops.lib.periods import RANGES, Range
from memories.models import ProposalVerdict
from memories.queries import decision_figures
from memories.queries.decision_figures import Figures, Row
from memories.web.telemetry import SEES

SECONDS = 60
"""How long the figures of a range are kept for all browsers."""
GATE = (
    Kind("allow", "ok", "allowed"),
    Kind("hold", "stopped", "held"),
    Kind("discard", "skipped", "discarded", "open"),
)
TRIAGE = (
    Kind(ProposalVerdict.PROMOTE, "ok", "promoted"),
    Kind(ProposalVerdict.MERGE, "escalated", "merged", "pointed"),
    Kind(ProposalVerdict.REVIEW, "stopped", "left to a person"),
    Kind(ProposalVerdict.REJECT, "skipped", "rejected", "open"),
    Kind(ProposalVerdict.EXPIRE, "failed", "expired", "hatched"),
)


@page((SEES, "memories.view_gatedecision", "memories.view_proposaldecision"))
def decisions(request: HttpRequest) -> HttpResponse:
    one = RANGES.get(request.GET.get("range", ""), RANGES["30d"])
    edges = edges_of(one, timezone.now())
    key = f"decision-figures-{one.name}-{edges[-1].isoformat()}"
    figures: Figures | None = cache.get(key)
    if figures is None:
        figures = decision_figures.read(edges)
        cache.set(key, figures, SECONDS)
    context = {
        "range": one,
        "ranges": RANGES.values(),
        "gate": _chart("Decisions of the gate", "memory.gate.completed", one, edges, figures.gate, GATE),
        "triage": _chart("Decisions on proposals", "memory.triage.completed", one, edges, figures.triage, TRIAGE),
        "gate_tables": [_table("Agent", figures.gate_agents, GATE), _table("Rule", figures.gate_rules, GATE)],
        "triage_tables": [_table("Tier", figures.triage_tiers, TRIAGE), _table("Rule", figures.triage_rules, TRIAGE)],
    }
    return render(request, "telemetry/decisions.html", context)


def _chart(
    name: str, action: str, one: Range, edges: Sequence[datetime], numbers: list[Counter[str]], kinds: Sequence[Kind]
) -> Bars:
    parts = parts_of(one, edges, numbers, reverse("telemetry"), f"action={action}", "during")
    return bars(f"{name} by {one.part}, {one.words}", parts, kinds)


def _table(first: str, rows: list[Row], kinds: Sequence[Kind]) -> dict[str, object]:
    """Return the variables of `telemetry/_decisions_of.html`."""
    return {
        "first": first,
        "kinds": kinds,
        "looked": any(row.looked is not None for row in rows),
        "rows": [(row, [row.verdicts[kind.name] for kind in kinds]) for row in rows],
    }
