"""What the gate and the triage decided over time, by agent and by rule, and what people changed afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db.models import BooleanField, Case, Count, ExpressionWrapper, IntegerField, Model, Q, Value, When
from django.db.models.fields.json import KeyTextTransform

from memories.models import GateDecision, ProposalDecision, ProposalVerdict, Tier
from memories.queries.gate_report import OPINIONS, disagrees

MOST = 20
"""Rows of a table, those with the most decisions."""
NO_AGENT, NO_RULE = "no agent", "no rule"
DECIDED = (
    ProposalVerdict.PROMOTE,
    ProposalVerdict.MERGE,
    ProposalVerdict.REJECT,
    ProposalVerdict.REVIEW,
    ProposalVerdict.EXPIRE,
)


@dataclass(slots=True)
class Row:
    """One agent, rule or tier: its decisions by verdict, and how many of them a person changed afterwards.

    `looked` are the decisions on which a person acted, None where nobody notes that (of the triage).
    """

    name: str
    verdicts: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    looked: int | None = None

    @property
    def total(self) -> int:
        return self.verdicts.total()


@dataclass(frozen=True, slots=True)
class Figures:
    """The decisions of a range. `gate` and `triage` have one Counter by verdict for each part of it."""

    gate: list[Counter[str]]
    triage: list[Counter[str]]
    gate_agents: list[Row]
    gate_rules: list[Row]
    triage_tiers: list[Row]
    triage_rules: list[Row]


def read(edges: Sequence[datetime]) -> Figures:
    """Read the decisions in the parts between two `edges` (UTC, ascending), by two queries.

    Discards that nobody labelled are kept for 14 days: before, only the others are counted.
    """
    gate: list[Counter[str]] = [Counter() for _ in edges[1:]]
    agents: dict[str, Row] = {}
    rules: dict[str, Row] = {}
    decided = _in_parts(GateDecision, edges).annotate(rule=KeyTextTransform("0", "reasons"))
    for part, verdict, rule, agent, label, number in decided.values_list(
        "part", "verdict", "rule", "agent", "label"
    ).annotate(count=Count("pk")):
        gate[part][verdict] += number
        for rows, name in ((agents, agent or NO_AGENT), (rules, rule or NO_RULE)):
            row = rows.setdefault(name, Row(name, looked=0))
            row.verdicts[verdict] += number
            if label in OPINIONS:
                row.looked = (row.looked or 0) + number
                row.changed += number * disagrees(verdict, label)
    triage: list[Counter[str]] = [Counter() for _ in edges[1:]]
    tiers: dict[str, Row] = {}
    by_rule: dict[str, Row] = {}
    taken_back = ExpressionWrapper(Q(undone_at__isnull=False), output_field=BooleanField())
    proposals = _in_parts(ProposalDecision, edges).filter(verdict__in=DECIDED).annotate(undone=taken_back)
    for part, tier, verdict, rule, undone, number in proposals.values_list(
        "part", "tier", "verdict", "rule", "undone"
    ).annotate(count=Count("pk")):
        triage[part][verdict] += number
        pairs = [(tiers, Tier(tier).label)]
        if tier == Tier.RULES:
            pairs.append((by_rule, rule or NO_RULE))
        for rows, name in pairs:
            row = rows.setdefault(name, Row(name))
            row.verdicts[verdict] += number
            row.changed += number * bool(undone)
    return Figures(gate, triage, _top(agents), _top(rules), _top(tiers), _top(by_rule))


def _in_parts(model: type[Model], edges: Sequence[datetime]) -> Any:
    """Return the rows of the range, each with the number of its `part`."""
    whens = [When(at__lt=until, then=Value(part)) for part, (_, until) in enumerate(pairwise(edges))]
    rows = model._default_manager.filter(at__gte=edges[0], at__lt=edges[-1]).order_by()
    return rows.annotate(part=Case(*whens, output_field=IntegerField()))


def _top(rows: dict[str, Row]) -> list[Row]:
    return sorted(rows.values(), key=lambda row: (-row.total, row.name))[:MOST]
