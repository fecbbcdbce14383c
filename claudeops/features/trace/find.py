"""Find what a text is about: memories in any state, discards, deleted memories, lines of logs, proposals. Bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeGuard, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from claudeops.features.trace.document import Near, Trace
from claudeops.features.trace.steps import End, Link, Name, Seen
from claudeops.lib import local_time
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

Row = TypeVar("Row", bound=Model)

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
QUOTED = 200
IN_INBOX = Link("the inbox", "inbox", (), "view=discarded")


def day(at: datetime | None) -> str:
    return local_time.day(at, timezone.now()) if at else ""


def quoted(text: str) -> str:
    """Return a text of an agent in one line, without control characters, cut."""
    text = fold(text)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def terms_in(text: str) -> frozenset[str]:
    return frozenset(index_terms(text[:LONGEST_QUERY]))


def longest_words(text: str) -> list[str]:
    """Return the two longest words of a text, by which the database looks for it."""
    long_words = {word for word in words(text[:LONGEST_QUERY]) if len(word) > 3}
    return sorted(long_words, key=lambda word: (-len(word), word))[:2]


def share(asked: frozenset[str], text: str) -> float:
    """Return the share (0..1) of the words asked for that a text has."""
    return len(asked.intersection(index_terms(text))) / len(asked) if asked else 0.0


def is_one(project: object) -> TypeGuard[int | None]:
    """Whether only what belongs to one project may be seen, or to none."""
    return project is None or isinstance(project, int)


def number_in(text: str) -> int | None:
    """Return the number of the memory that a text names; None for any other text."""
    match = NUMBER.match(text)
    return int(match[1]) if match else None


def memories_near(text: str, scope: Filters) -> list[Near]:
    """Return the memories nearest to a text within `scope`, active or not, best first. Two searches and one read."""
    where = scope_of(scope)
    cut = fold(text[:LONGEST_QUERY])
    vector = start_query_vector(cut)
    hits = keyword_search.search(list(dict.fromkeys(index_terms(cut)))[:64], where)
    exact = set(same_text(cut))
    cosines: dict[int, float] = {}
    query_vector = vector()
    by_words = sorted(hits.held, key=lambda pk: (-hits.coverage(pk), -pk))[:CANDIDATES]
    if not isinstance(query_vector, str):
        cosines = vector_search.nearest(query_vector, where, CANDIDATES).cosines
        cosines |= vector_search.cosines(query_vector, [pk for pk in by_words if pk not in cosines], where)
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


def discarded(found: Trace, scope: Filters, at: datetime) -> bool:
    """Look for it in what the gate discarded; the text of that is kept for 14 days."""
    rows = GateDecision.objects.filter(verdict="discard", at__gte=at - KEPT, at__lte=at).exclude(text="")
    if is_one(scope.project):
        rows = rows.filter(Q(project=None) | Q(project=scope.project))
    row = _best(found.asked, rows.order_by("-at", "-id")[:DISCARDS], lambda row: row.text)
    if row is None:
        return False
    reason = row.words or ", ".join(row.reasons)
    found.ended(End.DISCARDED, day=day(row.at), reason=reason)
    found.seen[Name.TRANSCRIPT] = _written_by(row.session_id, row.text, row.at)
    found.seen[Name.GATE] = Seen("Discarded it", reason, at=row.at, link=IN_INBOX)
    return True


def deleted(found: Trace) -> bool:
    """Look for the deletion of a memory that said it."""
    rows = MemoryChange.objects.filter(listed_as=Listed.DELETED, kind=Change.DELETED).order_by("-at", "-id")[:DELETED]
    row = _best(found.asked, rows, lambda row: str((row.before or {}).get("observation") or ""))
    if row is None:
        return False
    before, by = row.before or {}, f"by {row.actor}"
    found.ended(End.DELETED, day=day(row.at), reason=by if row.actor else "")
    found.seen |= {
        Name.TRANSCRIPT: _written_by(before.get("session_id"), str(before.get("observation")), None),
        Name.GATE: Seen("Held it for review" if before.get("verdict") == "hold" else "Allowed it"),
        Name.STORE: Seen("Kept it; since then deleted", row.reason or by, at=row.at),
    }
    return True


def _written_by(session_id: Any, text: str, at: datetime | None) -> Seen:
    if not isinstance(session_id, int):
        return Seen("It was said", quoted(text), at=at)
    return Seen(f"Session {session_id} wrote it", quoted(text), at=at, link=Link.to("session", session_id))


def proposal_of(text: str, scope: Filters) -> Proposal | None:
    """Return the latest change of MEMORY.md that was proposed and says the text."""
    rows = Proposal.objects.select_related("file")
    if is_one(scope.project):
        rows = rows.filter(Q(file__project=None) | Q(file__project=scope.project))
    return _best(text, rows.order_by("-id")[:PROPOSALS], lambda row: f"{row.text} {row.proposed_text}")


def _best(text: str, rows: QuerySet[Row], text_of: Callable[[Row], str]) -> Row | None:
    """Return the first row with the largest share of the text's words; None below SHARED."""
    terms = terms_in(text)
    best = max(((share(terms, text_of(row)), -place, row) for place, row in enumerate(rows)), default=None)
    return best[2] if best and best[0] >= SHARED else None


def in_narratives(found: Trace, scope: Filters) -> bool:
    """Look for it in the narratives of observed segments."""
    terms = terms_in(found.asked)
    for one in narratives.search(found.asked[:LONGEST_QUERY], scope, most=NEAREST):
        if share(terms, one.narrative) >= SHARED:
            found.ended(End.ONLY_SAID, day=day(one.at))
            link = Link(one.source, "transcript", (one.transcript,))
            found.seen[Name.TRANSCRIPT] = Seen(
                "An observed session was about it", quoted(one.narrative), at=one.at, link=link
            )
            return True
    return False


def in_logs(found: Trace, scope: Filters) -> bool:
    """Look for it in the log of the session, or those of the latest sessions: a marker's line first."""
    terms = terms_in(found.asked)
    if not terms:
        return False
    says = Q(text__icontains="memory")
    for word in longest_words(found.asked):
        says |= Q(text__icontains=word)
    best: tuple[tuple[Any, ...], LogEntry, str, End, str] | None = None
    remaining = MOST_FOUND
    for session in [found.session] if found.session else _latest(scope):
        most = MOST_LINES if found.session else LINES
        rows = LogEntry.objects.filter(session=session.pk, seq__lte=most, kind=LogKind.TEXT).filter(says)
        for entry in rows.order_by("-seq")[:remaining]:
            remaining -= 1
            for line, end, reason in _lines_that_say(terms, entry.text, in_project=session.project_id is not None):
                order = end is not End.ONLY_SAID, share(terms, line), entry.session_id, entry.seq
                if best is None or order > best[0]:
                    best = order, entry, line, end, reason
        if remaining <= 0:
            break
    if best is None:
        return False
    _, entry, line, end, reason = best
    found.ended(end, session=entry.session_id, day=day(entry.at), reason=reason)
    link = Link.to_line(entry.session_id, entry.seq)
    found.seen[Name.TRANSCRIPT] = Seen(
        f"Session {entry.session_id} said it", quoted(line.strip()), at=entry.at, link=link
    )
    found.seen[Name.STORE] = Seen("No memory of it is there", "deleted since, or discarded more than 14 days ago")
    return True


def _latest(scope: Filters) -> Iterable[Session]:
    rows = Session.objects.filter(started_at__isnull=False)
    if is_one(scope.project):
        rows = rows.filter(project=scope.project)
    if scope.agent not in (None, "*"):
        rows = rows.filter(agent__slug=scope.agent)
    return rows.order_by("-queued_at", "-id").only("id", "project_id")[:SESSIONS]


def _lines_that_say(terms: frozenset[str], text: str, *, in_project: bool) -> Iterable[tuple[str, End, str]]:
    """Yield (line, where it ended, why) for the lines of a log entry that say it."""
    malformed = "it is not written as [MEMORY:category:service] text"
    for line in text.splitlines():
        if share(terms, line) < SHARED:
            continue
        if OPENING not in line:
            yield (line, End.MALFORMED, malformed) if MARKER_LIKE.search(line) else (line, End.ONLY_SAID, "")
            continue
        markers = memory_markers(text, in_project=in_project)
        if unknown := next((one for one in markers.unknown if one.line_text == line), None):
            yield line, End.MALFORMED, unknown.reason
        elif line in accepted_lines(text).skipped:
            yield line, End.QUOTED, ""
        elif any(one.observation in fold(line) for one in markers.found):
            yield line, End.NOT_STORED, ""
        else:
            yield line, End.MALFORMED, malformed
