"""What one session could know of a memory: recall, budget and told, by its receipt and by recalling anew as of then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from claudeops.lib import local_time
from memories.capture.fields import agent_id
from memories.capture.text import fold
from memories.injection.budget import shown
from memories.injection.knowledge import MOST_KNOWLEDGE, weights
from memories.injection.relevant import LEAST_CONFIDENCE, MOST_RELEVANT, RELEVANT_SHARE
from memories.injection.windows import windowed
from memories.lifecycle import rules
from memories.models import Memory, Recalled, Verdict
from memories.recall import Filters, recall
from memories.recall.keyword_index import collection, frequencies
from memories.recall.query import STOP_WORDS, read_query, term_of, words
from memories.taxonomy import AGENT, KNOWLEDGE, OPS, TAXONOMIES
from sessions_app.models import InjectionReceipt, Session
from sessions_app.trace.place import Ranking, Row, Shown, around, confirmations_needed, ranking_of
from sessions_app.trace.sentence import joined
from sessions_app.trace.steps import End, Link, Name, Seen

RECALLS = 200
"""The latest recalls of a session that are read."""
WIDE = 100
"""Hits of a recall that is done anew, to find the rank of a memory that was not among the first."""
TRIED = 3
"""Words that the task might have said, the rarest of the memory: each of the first two is tried, then all."""
MOST_CONFIRMATIONS = 6


@dataclass(frozen=True, slots=True)
class InSession:
    """What a session made of a memory. `changes` are clauses that would have told it, each computed."""

    seen: dict[Name, Seen]
    end: End
    reason: str = ""
    rank: int | None = None
    told: int = 0
    changes: tuple[str, ...] = ()
    ranks: tuple[Shown, ...] = ()
    ranking: Ranking | None = None
    word: str = ""
    more_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Asked:
    memory: Memory
    session: Session
    receipt: InjectionReceipt
    at: datetime
    task: str
    seen: dict[Name, Seen] = field(default_factory=dict)


def moment_of(session: Session) -> datetime:
    """Return when the session was told what it was told (aware UTC)."""
    receipt = InjectionReceipt.objects.filter(session=session.pk).only("created_at").first()
    return receipt.created_at if receipt else session.started_at or session.queued_at


def fate_in(session: Session, memory: Memory, stored: End | None) -> InSession:
    """Return what became of a memory (in its state of then) in a session. `stored`: where it had ended before."""
    receipt = InjectionReceipt.objects.filter(session=session.pk).first()
    told = Seen("Not told", _became(session), link=Link(f"session {session.pk}", "session", (session.pk,)))
    seen = {Name.TOLD: told}
    if receipt is not None and (found := _told(memory, session, receipt, seen)):
        return found
    if found := _in_a_recall(memory, session, seen):
        return found
    if stored is not None:
        return InSession(seen, stored, changes=_as_if(memory, receipt))
    if memory.project_id is not None and memory.project_id != session.project_id:
        slug = memory.project.slug if memory.project else memory.project_id
        works = f"the project {session.project.slug}" if session.project else "no project"
        why = f"the project {slug}, and session {session.pk} worked in {works}"
        seen[Name.RECALL] = Seen("Did not look there: another project", why)
        return InSession(seen, End.OTHER_PROJECT, why)
    slug = session.agent.slug if session.agent else ""
    if memory.agent and memory.agent not in (slug, agent_id(slug)):
        why = f"the agent {memory.agent}, and session {session.pk} is of {slug or 'no agent'}"
        seen[Name.RECALL] = Seen("Did not look there: another agent", why)
        return InSession(seen, End.OTHER_AGENT, why)
    at = receipt.created_at if receipt else session.started_at or session.queued_at
    if memory.surface and not (window := windowed(memory, at)).is_open:
        seen[Name.RECALL] = Seen("Left it for its time", window.reason)
        return InSession(seen, End.WINDOW, window.reason)
    if receipt is None:
        seen[Name.TOLD] = Seen("The session has no receipt", _became(session), link=told.link)
        return InSession(seen, End.NO_PROMPT)
    task = (receipt.knowledge or {}).get("query") or session.task_text
    asked = _Asked(memory, session, receipt, at, fold(str(task)), seen)
    if memory.taxonomy == KNOWLEDGE.slug:
        return _knowledge(asked)
    return _ranked(asked)


def _became(session: Session) -> str:
    said = session.ended_with or session.get_status_display()
    return f"session {session.pk}: {fold(said)[:160]}"


def _told(memory: Memory, session: Session, receipt: InjectionReceipt, seen: dict[Name, Seen]) -> InSession | None:
    became = seen[Name.TOLD]
    for taxonomy in TAXONOMIES:
        entries = receipt.of(taxonomy)
        place = next((n for n, entry in enumerate(entries, 1) if entry["id"] == memory.pk), None)
        if place is not None:
            reason = str(entries[place - 1].get("reason") or "by confidence")
            ranking = ranking_of(taxonomy, _columns(receipt))
            seen |= {
                Name.RECALL: Seen(f"Took it {reason}"[:160], f"rank {place} of {ranking.eligible}"),
                Name.BUDGET: Seen(
                    f"Had room for it: {ranking.used:,} of {ranking.budget:,} tokens" if ranking.budget else "Had room",
                    f"{len(entries)} memories were told",
                ),
                Name.TOLD: Seen(f"In its prompt, number {place} of {len(entries)}", became.note, link=became.link),
            }
            return InSession(seen, End.TOLD, f"number {place} of {len(entries)} in its prompt", ranking=ranking)
    curated = receipt.curated if isinstance(receipt.curated, dict) else {}
    if memory.observation and memory.observation in str(curated.get("text") or ""):
        seen |= {
            Name.RECALL: Seen("Not needed: it is an entry of MEMORY.md"),
            Name.BUDGET: Seen("Within the budget of MEMORY.md"),
            Name.TOLD: Seen("In its prompt, by MEMORY.md", became.note, link=became.link),
        }
        return InSession(seen, End.TOLD, "as an entry of MEMORY.md in its prompt")
    return None


def _in_a_recall(memory: Memory, session: Session, seen: dict[Name, Seen]) -> InSession | None:
    """Return that an answer to a recall of the session itself named the memory."""
    became = seen[Name.TOLD]
    rows = Recalled.objects.filter(session=session.pk).exclude(surface="injection").order_by("-pk")
    for row in rows[:RECALLS]:
        place = next((n for n, hit in enumerate(row.hits, 1) if hit and hit[0] == memory.pk), None)
        if place is not None:
            seen |= {
                Name.RECALL: Seen(
                    f"Found it for “{fold(row.query)[:120]}”", f"rank {place} of {len(row.hits)}", at=row.at
                ),
                Name.BUDGET: Seen("Not limited: the session asked for it"),
                Name.TOLD: Seen("In the answer to its recall", became.note, link=became.link),
            }
            return InSession(seen, End.TOLD, f"in the answer to its recall “{fold(row.query)[:80]}”, number {place}")
    return None


def _columns(receipt: InjectionReceipt) -> dict[str, Any]:
    names = ("included", "left_out", "counts", "budget", "tokens", "project", "knowledge")
    return {name: getattr(receipt, name) for name in names}


def _row(memory: Memory, confidence: float | None = None) -> Row:
    sure = memory.confidence if confidence is None else confidence
    weight = 1.0 if memory.taxonomy == OPS.slug or memory.relevance_score is None else memory.relevance_score
    return Row(memory.pk, memory.service, memory.category, memory.observation, sure, sure * weight)


def as_if_told(memory: Memory, session: Session | None) -> tuple[str, ...]:
    """Return what would have told the session a memory that may not be told."""
    return _as_if(memory, InjectionReceipt.objects.filter(session=session.pk).first()) if session else ()


def _as_if(memory: Memory, receipt: InjectionReceipt | None) -> tuple[str, ...]:
    """Return the clause that would have told an operational memory: its place if it had been allowed and active."""
    if receipt is None or memory.taxonomy != OPS.slug or memory.surface:
        return ()
    least = OPS.injected_from or 0.0
    sure = memory.confidence if memory.confidence >= least else rules.reinforced(least, OPS)
    ranking = ranking_of(OPS.slug, _columns(receipt)).with_(_row(memory, sure))
    rank = ranking.rank(memory.pk)
    if rank is None or not ranking.fits(rank):
        return ()
    is_decided = memory.verdict == Verdict.HOLD or memory.active
    what = "a person had approved it" if is_decided else "it had been active and confirmed"
    return (f"if {what} (confidence {shown(sure)}, rank {rank})",)


def _ranked(asked: _Asked) -> InSession:
    """Operational memories and those of a project: by their rank, and for a task by a recall."""
    memory, seen = asked.memory, asked.seen
    if memory.taxonomy == AGENT.slug:
        reason = next(
            (str(e.get("reason")) for e in asked.receipt.left_out if isinstance(e, dict) and e.get("id") == memory.pk),
            "",
        )
        seen[Name.RECALL] = Seen("It is told by the agent's memory file alone")
        seen[Name.BUDGET] = Seen("Its line was left out", reason or "its file has no such line, or is switched off")
        return InSession(seen, End.BUDGET if reason else End.LOST, reason)
    ranking = ranking_of(memory.taxonomy, _columns(asked.receipt))
    named = ranking.rank(memory.pk)
    row = next((one for one in ranking.rows if one.memory_id == memory.pk), _row(memory))
    found = ranking if named is not None else ranking.with_(row)
    rank = named or _inserted(found, ranking, memory.pk)
    if named is None and rank is not None and found.fits(rank):
        seen[Name.RECALL] = Seen("Its rank would have done", f"rank {rank} of {found.eligible}")
        seen[Name.BUDGET] = Seen(f"Had room for it: {ranking.used:,} of {ranking.budget:,} tokens")
        became = seen[Name.TOLD]
        seen[Name.TOLD] = Seen("The receipt does not name it", became.note, link=became.link)
        return InSession(seen, End.LOST)
    is_ops = memory.taxonomy == OPS.slug
    by = "confidence" if is_ops else "confidence × relevance"
    said = f", as the recall of “{asked.task[:80]}” did not bring it" if asked.task and is_ops else ""
    where = f", rank {rank} of {found.eligible}" if rank else f", behind the first {len(ranking.rows)}"
    seen[Name.RECALL] = Seen(
        f"Found it by its {by}{where}",
        f"{by} {row.score:.2f}{said}",
        is_low=True,
    )
    changes: list[str] = []
    word = ""
    if memory.taxonomy == OPS.slug and asked.task and (tried := _if_task_said(asked, ranking, row)):
        word, place = tried
        changes.append(f"if the task had said {word} (rank {place} of its recall)")
    policy, raised, sure = TAXONOMIES[memory.taxonomy], [], row.confidence
    for _ in range(MOST_CONFIRMATIONS):
        sure = rules.reinforced(sure, policy)
        raised.append(sure)
    if done := confirmations_needed(found, row, raised):
        count, level, place = done
        since = local_time.day(memory.updated_at, timezone.now())
        once = "anyone had confirmed it" if count == 1 else f"it had been confirmed {count} times"
        changes.append(f"if {once} since {since} (confidence {shown(level)}, rank {place})")
    more = max(0, found.needed(rank) - found.budget) if rank else 0
    if more:
        changes.append(f"with {more:,} more tokens")
    if rank and found.most is not None and rank > found.most:
        changes.append(f"with a limit of {rank:,} memories instead of {found.most:,}")
    seen[Name.BUDGET] = Seen(
        f"Left it out: the block was full after rank {ranking.told}",
        f"{ranking.used:,} of {ranking.budget:,} tokens were used; this memory needs {found.tokens_of(row):,}",
    )
    return InSession(
        seen,
        End.BUDGET,
        rank=rank,
        told=ranking.told,
        changes=tuple(changes),
        ranks=tuple(around(found, memory.pk)),
        ranking=found,
        word=word,
        more_tokens=more,
    )


def _inserted(found: Ranking, ranking: Ranking, memory_id: int) -> int | None:
    """Return the rank of a memory that the receipt does not name; None behind the last of those that it names."""
    rank = found.rank(memory_id)
    is_whole = ranking.eligible <= len(ranking.rows)
    return rank if rank is not None and (is_whole or rank <= len(ranking.rows)) else None


def _knowledge(asked: _Asked) -> InSession:
    """Knowledge is told by a recall alone: the receipt names its hits, and a wider recall as of then the others."""
    memory, seen = asked.memory, asked.seen
    ranking = ranking_of(KNOWLEDGE.slug, _columns(asked.receipt), most=MOST_KNOWLEDGE)
    rank = ranking.rank(memory.pk)
    if rank is not None:
        row = ranking.rows[rank - 1]
        seen[Name.RECALL] = Seen(
            f"Found it for “{asked.task[:120]}”, rank {rank} of {len(ranking.rows)}",
            f"score {row.score:.2f}",
            is_low=True,
        )
        needed = max(0, ranking.needed(rank) - ranking.budget)
        changes = (
            (f"with {needed:,} more tokens",)
            if needed
            else (f"with a limit of {rank:,} memories instead of {ranking.told:,}",)
        )
        seen[Name.BUDGET] = Seen(
            f"Left it out: the block was full after rank {ranking.told}",
            f"{ranking.used:,} of {ranking.budget:,} tokens were used; this memory needs {ranking.tokens_of(row):,}",
        )
        return InSession(
            seen,
            End.BUDGET,
            rank=rank,
            told=ranking.told,
            changes=changes,
            ranks=tuple(around(ranking, memory.pk)),
            ranking=ranking,
            more_tokens=needed,
        )
    why = str((asked.receipt.knowledge or {}).get("why") or "")
    if not asked.task:
        seen[Name.RECALL] = Seen("Was not asked: the session had no task", why)
        return InSession(seen, End.NOT_FOUND)
    scope = _scope(asked, KNOWLEDGE.slug)
    hits = recall(asked.task, scope, limit=WIDE, at=asked.at, weights=weights(), rewrite=False).hits
    place = next((n for n, hit in enumerate(hits, 1) if hit.memory_id == memory.pk), None)
    said = f"rank {place}, behind what a prompt takes" if place else "no hit, by words or by meaning"
    seen[Name.RECALL] = Seen(f"Did not bring it for “{asked.task[:120]}”", why or said)
    clauses: tuple[str, ...] = ()
    word = ""
    for one in _words(memory, asked.task):
        hits = recall(f"{asked.task} {' '.join(one)}", scope, at=asked.at, weights=weights(), rewrite=False).hits
        rank = next((n for n, hit in enumerate(hits, 1) if hit.memory_id == memory.pk), None)
        if rank is not None and rank <= MOST_KNOWLEDGE:
            word = joined(one, "and")
            clauses = (f"if the task had said {word} (rank {rank})",)
            break
    return InSession(seen, End.NOT_FOUND, rank=place, changes=clauses, word=word)


def _scope(asked: _Asked, taxonomy: str) -> Filters:
    agent = asked.session.agent.slug if asked.session.agent else None
    return Filters(project=asked.session.project_id, agent=agent, taxonomy=taxonomy, trusted_only=True, as_of=asked.at)


def _if_task_said(asked: _Asked, ranking: Ranking, row: Row) -> tuple[str, int] | None:
    """Return the words of the memory that, said in the task, would have told it, and its rank in that recall."""
    memory = asked.memory
    sure = memory.confidence >= LEAST_CONFIDENCE or memory.approved_at is not None
    if not sure:
        return None
    room = int(ranking.budget * RELEVANT_SHARE)
    scope = _scope(asked, OPS.slug)
    for words_ in _words(memory, asked.task):
        hits = recall(f"{asked.task} {' '.join(words_)}", scope, limit=MOST_RELEVANT, at=asked.at, rewrite=False).hits
        rank = next((n for n, hit in enumerate(hits, 1) if hit.memory_id == memory.pk), None)
        if rank is None:
            continue
        rows = tuple(
            Row(hit.memory_id, hit.service, hit.category, hit.observation, hit.confidence, hit.score)
            for hit in hits[:rank]
        )
        block = Ranking(OPS.slug, rows, rank, room, 0, ranking.eligible)
        if block.fits(rank):
            return joined(words_, "and"), rank
    return None


def _words(memory: Memory, task: str) -> Sequence[Sequence[str]]:
    """Return what the task might have said: rare words of the memory that it does not say, its service first."""
    said = set(read_query(task).terms)
    named = list(dict.fromkeys(words(f"{memory.service or ''} {memory.observation}")))
    mine = {
        term_of(word): word for word in reversed(named) if word not in STOP_WORDS and word.isalpha() and len(word) > 2
    }
    mine = {term: word for term, word in mine.items() if term not in said}
    counts, _ = frequencies(list(mine), collection().size)
    service = term_of(memory.service) if memory.service else ""
    ordered = sorted(mine, key=lambda term: (term != service, counts.get(term, 0), term))
    rare = [mine[term] for term in ordered[:TRIED]]
    return [*([word] for word in rare[:2]), rare] if len(rare) > 1 else [rare] if rare else []
