"""How right matching is, and how long one new text against 300 known ones of its scope takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memories.matching import Kind, matcher, meaning, normalise, relation, tokens
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.memories.pairs import FOLDER, Figures, pairs, texts

pytestmark = pytest.mark.django_db(transaction=True)
KNOWN = 300
NEW = "Takes about 50 seconds to start after a restart of the web container on host-7"


def forget() -> None:
    """As in a process that has just begun."""
    normalise._kept.cache_clear()
    meaning._stem.cache_clear()
    meaning._meaning.cache_clear()
    tokens._known_chunk.cache_clear()


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
    for text in known:
        relation(text, NEW)
