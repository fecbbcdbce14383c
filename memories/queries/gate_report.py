"""How often people disagreed with the gate, for each rule and each model, and the thresholds that follow.

A label is a person's act on what the gate decided. They disagree with a hold that they release as it is, with a discard
that they allow, and with an allow that they discard or edit; a hold that they edit before they release it was right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count
from django.db.models.fields.json import KeyTextTransform

from memories.capture.gate import Thresholds
from memories.capture.knowledge_rules import references
from memories.capture.reasons import FAVOURABLE, OF_THE_MODEL, Reason
from memories.lifecycle import gate_decisions
from memories.models import GateDecision, Label

DAYS = 90
MOST_LABELS = 5_000
"""The latest labelled decisions that a proposal is made of."""

ENOUGH = 30
"""Labels that a proposal needs."""

ENOUGH_ABOVE = 10
"""Labels that it needs at or above the proposed value."""

RIGHT = 0.9
"""The share of what the gate allows that a person would allow as it is."""

STEPS = tuple(step / 20 for step in range(6, 20))
"""The values that may be proposed: 0.30, 0.35 … 0.95."""

OPINIONS = (Label.RELEASED, Label.DISCARDED, Label.EDITED)


def disagrees(verdict: str, label: str) -> bool:
    """Whether a person who labelled it so disagreed with the verdict allow, hold or discard."""
    if verdict == "hold":
        return label == Label.RELEASED
    if verdict == "discard":
        return label in (Label.RELEASED, Label.EDITED)
    return label in (Label.DISCARDED, Label.EDITED)


@dataclass(slots=True)
class Row:
    """One line: a rule's code or a model's name, its verdict, and counts of decisions."""

    name: str
    verdict: str
    decisions: int = 0
    labelled: int = 0
    disagreed: int = 0

    @property
    def range(self) -> tuple[float, float] | None:
        """The share of disagreement with its range of chance (95 %); None without a label."""
        return chance(self.disagreed, self.labelled) if self.labelled else None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A threshold as it is and as it should be; `value` None: `why` says what is missing."""

    name: str
    now: float
    value: float | None
    labels: int
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """All decisions from `since` on (UTC). `rules` are by the deciding reason, `models` by what the model said."""

    since: datetime
    decisions: int
    labelled: int
    rules: list[Row] = field(default_factory=list)
    models: list[Row] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)


def report(at: datetime, days: int = DAYS) -> Report:
    """Count the decisions of the last `days` before `at`, and propose thresholds by the labels among them."""
    since = at - timedelta(days=days)
    decisions = GateDecision.objects.filter(at__gte=since, at__lte=at).order_by()
    grouped = (
        decisions.annotate(rule=KeyTextTransform("0", "reasons"))
        .values_list("rule", "verdict", "model", "said_gate", "label")
        .annotate(count=Count("pk"))
    )
    rules: dict[tuple[str, str], Row] = {}
    models: dict[tuple[str, str], Row] = {}
    total: Counter[bool] = Counter()
    for rule, verdict, model, answer, label, count in grouped:
        total[label in OPINIONS] += count
        if rule not in (*OF_THE_MODEL, *FAVOURABLE, Reason.HELD_BEFORE, None):
            _add(rules, (rule, verdict), verdict, label, count)
        if answer in ("allow", "hold", "discard"):
            _add(models, (model or "unknown", answer), answer, label, count)
    return Report(
        since,
        total.total(),
        total[True],
        sorted(rules.values(), key=lambda row: (-row.decisions, row.name)),
        sorted(models.values(), key=lambda row: (row.name, row.verdict)),
        _proposals(since, at),
    )


def _add(rows: dict[tuple[str, str], Row], key: tuple[str, str], verdict: str, label: str, count: int) -> None:
    row = rows.setdefault(key, Row(key[0], verdict))
    row.decisions += count
    if label in OPINIONS:
        row.labelled += count
        row.disagreed += count * disagrees(verdict, label)


def _proposals(since: datetime, at: datetime) -> list[Proposal]:
    """Propose by facts whose model said allow and that no rule held: with an exact reference, and without."""
    rows = GateDecision.objects.filter(
        at__gte=since, at__lte=at, label__in=OPINIONS, said_gate="allow", said_confidence__isnull=False
    )
    free = {Reason.LOW_CONFIDENCE, *FAVOURABLE}
    samples: dict[bool, list[tuple[float, bool]]] = {True: [], False: []}
    latest = rows.order_by("-at", "-pk").values_list("said_confidence", "label", "reasons", "fact__text")[:MOST_LABELS]
    for confidence, label, codes, text in latest:
        if confidence is not None and text is not None and set(codes) <= free:
            samples[bool(references(text))].append((confidence, label == Label.RELEASED))
    now = gate_decisions.current_thresholds()
    return [propose("allow", now, samples[False]), propose("reference", now, samples[True])]


def propose(name: str, now: Thresholds, labels: Sequence[tuple[float, bool]]) -> Proposal:
    """Propose the lowest value from which on people would allow RIGHT of the facts. Pure.

    `labels` are (the model's confidence, whether a person released it as it was).
    """
    value = getattr(now, name)
    if len(labels) < ENOUGH:
        return Proposal(name, value, None, len(labels), f"{len(labels)} of {ENOUGH} labels that it takes")
    for step in STEPS:
        above = [is_right for confidence, is_right in labels if confidence >= step]
        if len(above) < ENOUGH_ABOVE:
            break
        if sum(above) >= RIGHT * len(above):
            why = f"from there on people released {sum(above)} of {len(above)}"
            return Proposal(name, value, step, len(labels), why)
    return Proposal(name, value, None, len(labels), f"at no value would people release {RIGHT:.0%} of what it allows")


def chance(part: int, whole: int) -> tuple[float, float]:
    """Return the range in which a share lies with 95 % (Wilson): (0, 1) for a `whole` of 0. Pure."""
    if not whole:
        return 0.0, 1.0
    z, share = 1.96, part / whole
    middle = share + z * z / (2 * whole)
    spread = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    scale = 1 + z * z / whole
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
