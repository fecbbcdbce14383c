"""How right matching is, and how long one new text against 300 known ones of its scope takes."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memories import matching
from memories.matching import Kind, matcher, relation
from memories.models import Memory, Source
from memories.store import Provenance, Statement, remember
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.memories.near_facts import near_facts
from tests.memories.pairs import FOLDER, Figures, pairs, texts
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
KNOWN = 300
NEW = "Takes about 50 seconds to start after a restart of the web container on host-7"


def forget() -> None:
    """Reset the matching as in a new process: none of its modules keeps anything."""
    for found in pkgutil.iter_modules(matching.__path__, f"{matching.__name__}."):
        for one in vars(importlib.import_module(found.name)).values():
            if getattr(one, "__module__", "").startswith(matching.__name__) and hasattr(one, "cache_clear"):
                one.cache_clear()


def test_matching(report: Report, smoke: bool) -> None:
    rows = []
    for name in sorted(Path(file).stem for file in FOLDER.glob("*.jsonl")):
        figures = Figures.of(pairs(name), matcher)
        rows.append(
            (
                name,
                str(sum(figures.confusion.values())),
                f"{figures.macro_f1:.3f}",
                str(figures.confusion[Kind.DISTINCT, Kind.REINFORCES]),
                f"{figures.share(Kind.CONTRADICTS, Kind.REINFORCES):.1%}",
                f"{figures.share(Kind.CONTRADICTS, Kind.CONTRADICTS):.0%}",
                f"{figures.share(Kind.REINFORCES, Kind.REINFORCES):.0%}",
            )
        )
    columns = (
        "pairs",
        "number",
        "macro-F1",
        "distinct lost",
        "contradictions swallowed",
        "found",
        "restatements merged",
    )
    report("MATCHING, pairs of operational facts (unseen: written after the rules)", columns, rows)


def test_a_thousand_near_facts(report: Report, smoke: bool) -> None:
    """Remembered one after the other each becomes a row of its own; said again, or denied, they are taken as that."""
    near = near_facts()[:60] if smoke else near_facts()
    session = SessionFactory(agent=None)
    said = Provenance(source=Source.RUN, actor="agent:benchmark", session_id=session.pk, tier=1)
    taken: dict[str, Counter[str]] = {}
    for wording in ("fact", "same", "against"):
        counted = taken.setdefault(wording, Counter())
        for one in near:
            found = remember(Statement("behavior", getattr(one, wording), f"service-{one.scope}"), said, at=NOW)
            counted["contradicting" if found.contradicted else found.outcome] += 1
        if wording == "fact":
            assert Memory.objects.count() == len(near)
    columns = ("remembered", "number", "created", "reinforced", "contradicting")
    rows = [
        (wording, str(counted.total()), *(f"{counted[name]:,}" for name in columns[2:]))
        for wording, counted in taken.items()
    ]
    report("MATCHING, facts near in words in 40 scopes, by words alone where no model is", columns, rows)
    assert taken["fact"] == {"created": len(near)}
    assert taken["against"]["reinforced"] <= 0.01 * len(near)


def test_matching_speed(report: Report, smoke: bool) -> None:
    template = [
        f"Takes {10 + number % 80}s to start after restart of the web container on host-{number} -- wait a little"
        for number in range(KNOWN)
    ]
    rows = []
    for name, known in (("facts of all kinds", texts()[:KNOWN]), ("one template", template)):
        assert len(known) == KNOWN
        cold, warm = Series(), Series()
        for _ in range(2 if smoke else 10):
            forget()
            cold.time(compare_all, known)
            warm.time(compare_all, known)
        rows += [(name, "made", ms(cold.median), ms(cold.p95)), (name, "kept", ms(warm.median), ms(warm.p95))]
    columns = (f"one text against {KNOWN}", "normal forms", "median ms", "p95 ms")
    report("MATCHING, comparing", columns, rows)


def compare_all(known: list[str]) -> None:
    """Each close enough to be looked at three times, which few of a real scope are."""
    for text in known:
        relation(text, NEW, cosine=0.6)
