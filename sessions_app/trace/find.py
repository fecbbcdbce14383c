"""Find what a text is about: memories in any state, discards, deleted memories, lines of logs, proposals. Bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Q

from memories.candidates import same_text
from memories.capture.lines import accepted_lines
from memories.capture.markers import OPENING, memory_markers
from memories.capture.text import fold
from memories.models import Change, GateDecision, Memory, MemoryChange, Proposal
from memories.models.change import Listed
from memories.recall import keyword_search, narratives, vector_search
from memories.recall.filters import Filters, scope_of
from memories.recall.query import LONGEST_QUERY, index_terms, words
from memories.recall.query_vector import start_query_vector
from sessions_app.models import LogEntry, LogKind, Session
from sessions_app.trace.steps import End

Row = TypeVar("Row")

NUMBER = re.compile(r"\s*(?:memory\s*)?#?\[?m?(\d{1,18})\]?\s*\Z", re.IGNORECASE)
"""A memory by its number: 655, #655, m655, [m655], memory 655."""
CANDIDATES = 12
"""Memories of each search that are compared."""
SAME_WORDS, SAME_MEANING = 0.75, 0.8
"""From these shares of the text's words, or from this cosine on, a memory is taken for what the text is about."""
NEAR_WORDS, NEAR_MEANING = 0.25, 0.5
NEAREST = 3
DISCARDS, DELETED, PROPOSALS = 2_000, 2_000, 1_000
"""The latest rows of each that are compared with the text."""
KEPT = timedelta(days=14)
"""How long the text of a discard is kept."""
SESSIONS, LINES = 20, 5_000
"""The latest sessions whose logs are read, and the first lines of each; of a session that was asked for all up to
MOST_LINES."""
MOST_LINES = 20_000
MOST_FOUND = 200
"""Lines of logs that are compared."""
SHARED = 0.6
"""Least share of the text's words in a line or a discard that says it."""
MARKER_LIKE = re.compile(r"\bMEMORY\b\s*[:\]\-(]|\[\s*memory\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Near:
    """A memory near a text: `likeness` 0..1 is its share of the words, or its cosine if that is higher."""

    memory: Memory
    likeness: float
    is_it: bool


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a session's log that says the text, and what became of it there. `seq` is its place, `at` UTC."""

    session_id: int
    seq: int
    at: datetime
    text: str
    end: End
    reason: str = ""


def number_in(text: str) -> int | None:
    """Return the number of the memory that a text names; None for any other text."""
    found = NUMBER.match(text)
    return int(found[1]) if found else None


def memories_near(text: str, scope: Filters) -> list[Near]:
    """Return the memories nearest to a text within `scope`, active or not, best first. Two searches and one read."""
    where = scope_of(scope)
    cut = fold(text[:LONGEST_QUERY])
    vector = start_query_vector(cut)
    hits = keyword_search.search(list(dict.fromkeys(index_terms(cut)))[:64], where)
    exact = set(same_text(cut))
    cosines: dict[int, float] = {}
    found = vector()
    by_words = sorted(hits.held, key=lambda pk: (-hits.coverage(pk), -pk))[:CANDIDATES]
    if not isinstance(found, str):
        cosines = vector_search.nearest(found, where, CANDIDATES).cosines
        cosines |= vector_search.cosines(found, [pk for pk in by_words if pk not in cosines], where)
    by_meaning = sorted(cosines, key=lambda pk: (-cosines[pk], -pk))[:CANDIDATES]
    ids = {*by_words, *by_meaning, *exact}
    rows = Memory.objects.isolated_to(scope.project, scope.agent).filter(pk__in=ids).select_related("project")
    near = []
    for row in rows:
        covered, cosine = hits.coverage(row.pk), cosines.get(row.pk, 0.0)
        is_it = row.pk in exact or covered >= SAME_WORDS or cosine >= SAME_MEANING
        if is_it or covered >= NEAR_WORDS or cosine >= NEAR_MEANING:
            near.append(Near(row, 1.0 if row.pk in exact else max(covered, cosine), is_it))
    return sorted(near, key=lambda one: (not one.is_it, -one.likeness, not one.memory.active, -one.memory.pk))


def share(asked: frozenset[str], text: str) -> float:
    """Return the share (0..1) of the words asked for that a text has."""
    return len(asked.intersection(index_terms(text))) / len(asked) if asked else 0.0


def discard_of(text: str, at: datetime, scope: Filters) -> GateDecision | None:
    """Return what the gate discarded that says the text; its text is kept for 14 days."""
    rows = GateDecision.objects.filter(verdict="discard", at__gte=at - KEPT, at__lte=at).exclude(text="")
    if scope.project is None or isinstance(scope.project, int):
        rows = rows.filter(Q(project=None) | Q(project=scope.project))
    return _best(text, rows.order_by("-at", "-id")[:DISCARDS], lambda row: row.text)


def deleted_of(text: str) -> MemoryChange | None:
    """Return the deletion of a memory that said the text."""
    rows = MemoryChange.objects.filter(listed_as=Listed.DELETED, kind=Change.DELETED).order_by("-at", "-id")[:DELETED]
    return _best(text, rows, lambda row: str((row.before or {}).get("observation") or ""))


def proposal_of(text: str, scope: Filters) -> Proposal | None:
    """Return the latest change of MEMORY.md that was proposed and says the text."""
    rows = Proposal.objects.select_related("file")
    if scope.project is None or isinstance(scope.project, int):
        rows = rows.filter(Q(file__project=None) | Q(file__project=scope.project))
    return _best(text, rows.order_by("-id")[:PROPOSALS], lambda row: f"{row.text} {row.proposed_text}")


def _best(text: str, rows: Iterable[Row], said: Callable[[Row], str]) -> Row | None:
    asked = frozenset(index_terms(text[:LONGEST_QUERY]))
    best: Row | None = None
    most = SHARED
    for row in rows:
        found = share(asked, said(row))
        if found >= most and (best is None or found > most):
            best, most = row, found
    return best


def segment_of(text: str, scope: Filters) -> narratives.Narrative | None:
    """Return the observed segment whose narrative says the text."""
    asked = frozenset(index_terms(text[:LONGEST_QUERY]))
    for one in narratives.search(text[:LONGEST_QUERY], scope, most=NEAREST):
        if share(asked, one.narrative) >= SHARED:
            return one
    return None


def line_of(text: str, session: Session | None, scope: Filters) -> LogLine | None:
    """Return the line of a log that says the text: of the session, or of the latest sessions; a marker's first."""
    asked = frozenset(index_terms(text[:LONGEST_QUERY]))
    wanted = sorted(
        {word for word in words(text[:LONGEST_QUERY]) if len(word) > 3}, key=lambda word: (-len(word), word)
    )
    if not asked:
        return None
    found: list[tuple[bool, float, LogLine]] = []
    sessions = [session] if session else _latest(scope)
    left = MOST_FOUND
    for one in sessions:
        rows = LogEntry.objects.filter(session=one.pk, seq__lte=MOST_LINES if session else LINES, kind=LogKind.TEXT)
        says = Q(text__icontains="memory")
        for word in wanted[:2]:
            says |= Q(text__icontains=word)
        entries = list(rows.filter(says).order_by("-seq")[:left])
        left -= len(entries)
        for entry in entries:
            for line in _lines_that_say(asked, entry, in_project=one.project_id is not None):
                found.append((line.end is not End.ONLY_SAID, share(asked, line.text), line))
        if left <= 0:
            break
    return max(found, key=lambda one: (one[0], one[1], one[2].session_id, one[2].seq))[2] if found else None


def _latest(scope: Filters) -> Sequence[Session]:
    rows = Session.objects.filter(started_at__isnull=False)
    if scope.project is None or isinstance(scope.project, int):
        rows = rows.filter(project=scope.project)
    if scope.agent not in (None, "*"):
        rows = rows.filter(agent__slug=scope.agent)
    return list(rows.order_by("-queued_at", "-id").only("id", "project_id")[:SESSIONS])


def _lines_that_say(asked: frozenset[str], entry: LogEntry, *, in_project: bool) -> Iterable[LogLine]:
    markers = None
    for line in entry.text.splitlines():
        if share(asked, line) < SHARED:
            continue
        if OPENING in line:
            markers = markers or memory_markers(entry.text, in_project=in_project)
            unknown = next((one for one in markers.unknown if one.line_text == line), None)
            if unknown is not None:
                end, reason = End.MALFORMED, unknown.reason
            elif line in accepted_lines(entry.text).skipped:
                end, reason = End.QUOTED, ""
            elif any(one.observation in fold(line) for one in markers.found):
                end, reason = End.NOT_STORED, ""
            else:
                end, reason = End.MALFORMED, "it is not written as [MEMORY:category:service] text"
        elif MARKER_LIKE.search(line):
            end, reason = End.MALFORMED, "it is not written as [MEMORY:category:service] text"
        else:
            end, reason = End.ONLY_SAID, ""
        yield LogLine(entry.session_id, entry.seq, entry.at, line, end, reason)
