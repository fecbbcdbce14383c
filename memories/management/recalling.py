"""`manage.py memory recall`: recall on a terminal, with the trace for --explain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from claudeops.lib import times
from claudeops.lib.cli import NextAction, Refusal, Result
from memories.injection.budget import shown
from memories.recall import Hit, Recall
from memories.recall.service import Question, as_data, ask, by_person
from memories.taxonomy import GENERAL


def recall(
    query: str, as_of: str | None, tag: list[str], include: list[str], explain: bool, by: str, **given: Any
) -> Result:
    """Search all projects: whoever has a shell on this machine is the operator."""
    question = Question(
        sys.stdin.read() if query == "-" else query,
        tags=tuple(tag),
        include=tuple(include),
        as_of=_moment(as_of) if as_of else None,
        **given,
    )
    found = ask(by_person(by), question, "cli")
    lines = [_line(place, hit) for place, hit in enumerate(found.hits, 1)] or ["No memory answers this."]
    if found.trace.semantic != "on":
        lines.append(f"Semantic search is {found.trace.semantic}.")
    if explain:
        lines = [*_explained(found)]
    if found.narratives is not None:
        lines += ["", "Narratives of observed sessions:" if found.narratives else "No narrative answers this."]
        lines += [f"  {one.score:.3f}  {one.source}, {one.at:%Y-%m-%d}: {one.narrative}" for one in found.narratives]
    actions = [
        NextAction(f"manage.py memory show {hit.memory_id}", "see it with its history") for hit in found.hits[:1]
    ]
    return Result(as_data(found), "\n".join(lines), actions)


def _line(place: int, hit: Hit) -> str:
    held = " (held for review)" if hit.verdict != "allow" else " (unconfirmed)" if hit.unconfirmed else ""
    scope = f"[{hit.category}:{hit.service or GENERAL}]"
    return f"{place:>2}. {hit.score:.3f}  {hit.memory_id}  {scope} {hit.observation} ({shown(hit.confidence)}){held}"


def _explained(found: Recall) -> Iterator[str]:
    for place, hit in enumerate(found.hits, 1):
        parts = hit.parts
        yield _line(place, hit)
        yield "      " + ", ".join(
            [
                f"keyword rank {_or_none(parts.keyword_rank)} score {_or_none(parts.keyword_score)}",
                f"words covered {parts.coverage:.3f}{' (found whole)' if parts.phrase else ''}",
                f"vector rank {_or_none(parts.vector_rank)} cosine {_or_none(parts.cosine)}",
            ]
        )
        boosts = ", ".join(f"{name} {value:+.3f}" for name, value in parts.boosts.items()) or "none"
        yield (
            f"      fused {parts.fused:.3f}, neighbours {parts.context:.3f}, age factor {parts.age_factor:.3f} "
            f"({parts.age_days:.0f} days){', stale' if parts.stale else ''}, boosts: {boosts}, final {parts.final:.3f}"
        )
        if hit.collapsed:
            yield f"      stands for {', '.join(map(str, hit.collapsed))}, which are near-duplicates"
    if not found.hits:
        yield "No memory answers this."
    trace = found.trace
    yield ""
    yield f"Semantic search is {trace.semantic}. Profile {trace.profile}, {trace.candidates} candidates."
    if trace.vectors:
        yield f"Vectors compared by {trace.vectors}."
    if trace.pending:
        yield f"Without a vector yet: {trace.pending}."
    yield f"Query rewrite: {trace.rewrite}."
    if words := trace.searched or trace.terms:
        yield f"Words searched: {', '.join(words)}."
    dropped = ", ".join(f"{count} {reason}" for reason, count in trace.dropped.items() if count)
    yield f"Left out: {dropped or 'nothing'}."
    yield from trace.notes
    if trace.steps:
        yield "Duration: " + ", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in trace.steps.items()) + "."


def _or_none(value: float | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _moment(given: str) -> datetime:
    try:
        when = datetime.fromisoformat(given)
        return times.in_utc(when.replace(tzinfo=UTC) if when.tzinfo is None else when)
    except ValueError:
        raise Refusal(
            "usage", f"--as-of is {given!r}; allowed is a day or a time like 2026-11-21T23:00, UTC."
        ) from None
