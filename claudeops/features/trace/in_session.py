"""What one session could know of a memory: recall, budget and told, by its receipt and by recalling anew as of then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.utils import timezone

from claudeops.features.trace.document import Trace
from claudeops.features.trace.ranking import Ranking, Row, confirmations_needed, ranking_of
from claudeops.features.trace.steps import End, Link, Name, Seen, joined
from claudeops.lib import local_time
from memories.capture.fields import agent_id
from memories.capture.text import fold
from memories.injection.budget import shown
from memories.injection.knowledge import MOST_KNOWLEDGE, weights
from memories.injection.relevant import LEAST_CONFIDENCE, MOST_RELEVANT, RELEVANT_SHARE
from memories.injection.selector import TOLD_ONCE
from memories.injection.windows import windowed
from memories.lifecycle import rules
from memories.models import Memory, Recalled, Verdict
from memories.recall import Filters, recall
from memories.recall.keyword_index import collection, frequencies
from memories.recall.query import STOP_WORDS, read_query, term_of, words
from memories.recall.results import Hit
from memories.taxonomy import AGENT, KNOWLEDGE, OPS, TAXONOMIES
from sessions_app.models import InjectionReceipt, Session

RECALLS = 200
"""The latest recalls of a session that are read."""
WIDE = 100
"""Hits of a recall that is done anew, to find the rank of a memory that was not among the first."""
TRIED = 3
"""Words that the task might have said, the rarest of the memory: each of the first two is tried, then all."""
MOST_CONFIRMATIONS = 6


def moment_of(session: Session) -> datetime:
    """Return when the session was told what it was told (aware UTC)."""
    receipt = InjectionReceipt.objects.filter(session=session.pk).only("created_at").first()
    return receipt.created_at if receipt else session.started_at or session.queued_at


def read_session(found: Trace, session: Session, memory: Memory) -> None:
    """Read what became of a memory (in its state of then) in a session.

    Where it had ended before stays, unless the session was told it nevertheless.
    """
    receipt = InjectionReceipt.objects.filter(session=session.pk).first()
    became = f"session {session.pk}: {fold(session.ended_with or session.get_status_display())[:160]}"
    found.seen[Name.TOLD] = Seen("Not told", became, link=Link.to("session", session.pk))
    if (receipt and _told(found, memory, receipt)) or _in_a_recall(found, memory, session):
        return
    if found.end is not End.KNOWN:
        found.changes = _as_if(memory, receipt)
        return
    slug = session.agent.slug if session.agent else ""
    at = receipt.created_at if receipt else session.started_at or session.queued_at
    if memory.project_id is not None and memory.project_id != session.project_id:
        project = memory.project.slug if memory.project else memory.project_id
        works = f"the project {session.project.slug}" if session.project else "no project"
        why = f"{project}, and session {session.pk} worked in {works}"
        found.seen[Name.RECALL] = Seen("Did not look there: another project", f"the project {why}")
        found.ended(End.OTHER_PROJECT, reason=why)
    elif memory.agent and memory.agent not in (slug, agent_id(slug)):
        why = f"{memory.agent}, and session {session.pk} is of {slug or 'no agent'}"
        found.seen[Name.RECALL] = Seen("Did not look there: another agent", f"the agent {why}")
        found.ended(End.OTHER_AGENT, reason=why)
    elif memory.surface and not (window := windowed(memory, at)).is_open:
        found.seen[Name.RECALL] = Seen("Left it for its time", window.reason)
        found.ended(End.WINDOW, reason=window.reason)
    elif receipt is None:
        found.seen[Name.TOLD] = replace(found.seen[Name.TOLD], text="The session has no receipt")
        found.ended(End.NO_PROMPT)
    else:
        _Selection(found, session, memory, receipt).read()


def as_if_told(memory: Memory, session: Session | None) -> tuple[str, ...]:
    """Return what would have told the session a memory that may not be told."""
    return _as_if(memory, InjectionReceipt.objects.filter(session=session.pk).first()) if session else ()


def _told(trace: Trace, memory: Memory, receipt: InjectionReceipt) -> bool:
    """Read that the prompt named the memory."""
    steps = trace.seen
    for taxonomy in TAXONOMIES:
        entries = receipt.of(taxonomy)
        place = next((n for n, entry in enumerate(entries, 1) if entry["id"] == memory.pk), None)
        if place is None:
            continue
        ranking = _ranking(taxonomy, receipt)
        reason = str(entries[place - 1].get("reason") or "by confidence")
        room = f"Had room for it: {ranking.used:,} of {ranking.budget:,} tokens" if ranking.budget else "Had room"
        where = f"number {place} of {len(entries)}"
        steps[Name.RECALL] = Seen(f"Took it {reason}"[:160], f"rank {place} of {ranking.eligible}")
        steps[Name.BUDGET] = Seen(room, f"{len(entries)} memories were told")
        steps[Name.TOLD] = replace(steps[Name.TOLD], text=f"In its prompt, {where}")
        trace.ended(End.TOLD, reason=f"{where} in its prompt")
        return True
    curated = receipt.curated if isinstance(receipt.curated, dict) else {}
    if not memory.observation or memory.observation not in str(curated.get("text") or ""):
        return _told_elsewhere(trace, memory, receipt)
    steps[Name.RECALL] = Seen("Not needed: it is an entry of MEMORY.md")
    steps[Name.BUDGET] = Seen("Within the budget of MEMORY.md")
    steps[Name.TOLD] = replace(steps[Name.TOLD], text="In its prompt, by MEMORY.md")
    trace.ended(End.TOLD, reason="as an entry of MEMORY.md in its prompt")
    return True


def _told_elsewhere(trace: Trace, memory: Memory, receipt: InjectionReceipt) -> bool:
    """Read that another part of the prompt said the same as the memory."""
    left_out = (one for one in receipt.left_out if isinstance(one, dict) and one.get("id") == memory.pk)
    if not any(one.get("reason") == TOLD_ONCE for one in left_out):
        return False
    trace.seen[Name.RECALL] = Seen("Not needed: another part of the prompt says the same")
    trace.seen[Name.BUDGET] = Seen("Told once instead of twice")
    trace.seen[Name.TOLD] = replace(trace.seen[Name.TOLD], text="In its prompt, in another part")
    trace.ended(End.TOLD, reason="in another part of its prompt, which says the same")
    return True


def _in_a_recall(trace: Trace, memory: Memory, session: Session) -> bool:
    """Read that an answer to a recall of the session itself named the memory."""
    rows = Recalled.objects.filter(session=session.pk).exclude(surface="injection").order_by("-pk")
    for row in rows[:RECALLS]:
        place = next((n for n, hit in enumerate(row.hits, 1) if hit and hit[0] == memory.pk), None)
        if place is not None:
            query = fold(row.query)
            trace.seen[Name.RECALL] = Seen(
                f"Found it for “{query[:120]}”", f"rank {place} of {len(row.hits)}", at=row.at
            )
            trace.seen[Name.BUDGET] = Seen("Not limited: the session asked for it")
            trace.seen[Name.TOLD] = replace(trace.seen[Name.TOLD], text="In the answer to its recall")
            trace.ended(End.TOLD, reason=f"in the answer to its recall “{query[:80]}”, number {place}")
            return True
    return False


def _ranking(taxonomy: str, receipt: InjectionReceipt, *, most: int | None = None) -> Ranking:
    names = ("included", "left_out", "counts", "budget", "tokens", "project", "knowledge")
    return ranking_of(taxonomy, {name: getattr(receipt, name) for name in names}, most=most)


def _row(memory: Memory, confidence: float) -> Row:
    weight = 1.0 if memory.taxonomy == OPS.slug or memory.relevance_score is None else memory.relevance_score
    return Row(memory.pk, memory.service, memory.category, memory.observation, confidence, confidence * weight)


def _as_if(memory: Memory, receipt: InjectionReceipt | None) -> tuple[str, ...]:
    """Return the clause that would have told an operational memory: its place if it had been allowed and active."""
    if receipt is None or memory.taxonomy != OPS.slug or memory.surface:
        return ()
    least = OPS.injected_from or 0.0
    sure = memory.confidence if memory.confidence >= least else rules.reinforced(least, OPS)
    ranking = _ranking(OPS.slug, receipt).with_(_row(memory, sure))
    rank = ranking.rank(memory.pk)
    if rank is None or not ranking.fits(rank):
        return ()
    is_decided = memory.verdict == Verdict.HOLD or memory.active
    what = "a person had approved it" if is_decided else "it had been active and confirmed"
    return (f"if {what} (confidence {shown(sure)}, rank {rank})",)


class _Selection:
    """Why the prompt of a session, by its receipt, left out a memory that it might have been told."""

    def __init__(self, found: Trace, session: Session, memory: Memory, receipt: InjectionReceipt) -> None:
        self.found, self.session, self.memory, self.receipt = found, session, memory, receipt
        self.at = receipt.created_at
        self.task = fold(str((receipt.knowledge or {}).get("query") or session.task_text))

    def read(self) -> None:
        if self.memory.taxonomy == KNOWLEDGE.slug:
            self._knowledge()
        elif self.memory.taxonomy == AGENT.slug:
            self._agent_file()
        else:
            self._ranked()

    def _agent_file(self) -> None:
        steps, entries = self.found.seen, [one for one in self.receipt.left_out if isinstance(one, dict)]
        reason = next((str(one.get("reason")) for one in entries if one.get("id") == self.memory.pk), "")
        steps[Name.RECALL] = Seen("It is told by the agent's memory file alone")
        steps[Name.BUDGET] = Seen("Its line was left out", reason or "its file has no such line, or is switched off")
        self.found.ended(End.BUDGET if reason else End.LOST, reason=reason)

    def _ranked(self) -> None:
        """Operational memories and those of a project: by their rank, and for a task by a recall."""
        memory, steps, is_ops = self.memory, self.found.seen, self.memory.taxonomy == OPS.slug
        receipts = _ranking(memory.taxonomy, self.receipt)
        rank = receipts.rank(memory.pk)
        row = receipts.rows[rank - 1] if rank else _row(memory, memory.confidence)
        ranking = receipts if rank else receipts.with_(row)
        if rank is None:
            rank = ranking.rank(memory.pk)
            if rank == len(ranking.rows) and len(receipts.rows) < receipts.eligible:
                rank = None  # somewhere behind the last of those that the receipt names
            if rank is not None and ranking.fits(rank):
                room = f"Had room for it: {receipts.used:,} of {receipts.budget:,} tokens"
                steps[Name.RECALL] = Seen("Its rank would have done", f"rank {rank} of {ranking.eligible}")
                steps[Name.BUDGET] = Seen(room)
                steps[Name.TOLD] = replace(steps[Name.TOLD], text="The receipt does not name it")
                self.found.ended(End.LOST)
                return
        by = "confidence" if is_ops else "confidence × relevance"
        note = f", as the recall of “{self.task[:80]}” did not bring it" if self.task and is_ops else ""
        where = f"rank {rank} of {ranking.eligible}" if rank else f"behind the first {len(receipts.rows)}"
        steps[Name.RECALL] = Seen(f"Found it by its {by}, {where}", f"{by} {row.score:.2f}{note}", is_low=True)
        changes = self._if_task_said(receipts) if is_ops and self.task else []
        policy, raised = TAXONOMIES[memory.taxonomy], [row.confidence]
        for _ in range(MOST_CONFIRMATIONS):
            raised.append(rules.reinforced(raised[-1], policy))
        if need := confirmations_needed(ranking, row, raised[1:]):
            count, level, place = need
            since = local_time.day(memory.updated_at, timezone.now())
            once = "anyone had confirmed it" if count == 1 else f"it had been confirmed {count} times"
            changes.append(f"if {once} since {since} (confidence {shown(level)}, rank {place})")
        self._no_room(ranking, row, rank, changes)
        if rank and ranking.most is not None and rank > ranking.most:
            changes.append(f"with a limit of {rank:,} memories instead of {ranking.most:,}")

    def _no_room(self, ranking: Ranking, row: Row, rank: int | None, changes: list[str]) -> None:
        more = max(0, ranking.needed(rank) - ranking.budget) if rank else 0
        if more:
            changes.append(f"with {more:,} more tokens")
        self.found.seen[Name.BUDGET] = Seen(
            f"Left it out: the block was full after rank {ranking.told}",
            f"{ranking.used:,} of {ranking.budget:,} tokens were used; this memory needs {ranking.tokens_of(row):,}",
        )
        self.found.ended(End.BUDGET, rank=rank, told=ranking.told)
        self.found.ranking, self.found.changes, self.found.needs_tokens = ranking, changes, bool(more)

    def _knowledge(self) -> None:
        """Knowledge is told by a recall alone: the receipt names its hits, and a wider recall as of then the others."""
        steps, most = self.found.seen, MOST_KNOWLEDGE
        ranking = _ranking(KNOWLEDGE.slug, self.receipt, most=most)
        rank = ranking.rank(self.memory.pk)
        if rank is not None:
            row, changes = ranking.rows[rank - 1], list[str]()
            found_for = f"Found it for “{self.task[:120]}”, rank {rank} of {len(ranking.rows)}"
            steps[Name.RECALL] = Seen(found_for, f"score {row.score:.2f}", is_low=True)
            self._no_room(ranking, row, rank, changes)
            if not changes:
                changes.append(f"with a limit of {rank:,} memories instead of {ranking.told:,}")
            return
        why = str((self.receipt.knowledge or {}).get("why") or "")
        self.found.ended(End.NOT_FOUND)
        if not self.task:
            steps[Name.RECALL] = Seen("Was not asked: the session had no task", why)
            return
        place, _ = self._recalled(self.task, WIDE)
        note = f"rank {place}, behind what a prompt takes" if place else "no hit, by words or by meaning"
        steps[Name.RECALL] = Seen(f"Did not bring it for “{self.task[:120]}”", why or note)
        for added in self._words():
            place, _ = self._recalled(f"{self.task} {' '.join(added)}")
            if place is not None and place <= most:
                self.found.word = joined(added, "and")
                self.found.changes = [f"if the task had said {self.found.word} (rank {place})"]
                return

    def _recalled(self, query: str, limit: int | None = None) -> tuple[int | None, Sequence[Hit]]:
        """Recall as of then; return the rank of the memory, and all hits."""
        taxonomy, agent = self.memory.taxonomy, self.session.agent.slug if self.session.agent else None
        scope = Filters(
            project=self.session.project_id, agent=agent, taxonomy=taxonomy, trusted_only=True, as_of=self.at
        )
        weighed = weights("balanced") if taxonomy == KNOWLEDGE.slug else None
        hits = recall(query, scope, limit=limit, at=self.at, weights=weighed, rewrite=False).hits
        return next((n for n, hit in enumerate(hits, 1) if hit.memory_id == self.memory.pk), None), hits

    def _if_task_said(self, ranking: Ranking) -> list[str]:
        """Return the clause with the words of the memory that, said in the task, would have told it by that recall."""
        memory = self.memory
        least = LEAST_CONFIDENCE
        if memory.confidence < least and memory.approved_at is None:
            return []
        room = int(ranking.budget * RELEVANT_SHARE)
        for added in self._words():
            rank, hits = self._recalled(f"{self.task} {' '.join(added)}", MOST_RELEVANT)
            rows = tuple(
                Row(hit.memory_id, hit.service, hit.category, hit.observation, hit.confidence, hit.score)
                for hit in hits[: rank or 0]
            )
            if rank is not None and Ranking(OPS.slug, rows, rank, room, 0, ranking.eligible).fits(rank):
                self.found.word = joined(added, "and")
                return [f"if the task had said {self.found.word} (rank {rank} of its recall)"]
        return []

    def _words(self) -> Sequence[Sequence[str]]:
        """Return what the task might have said: rare words of the memory that it does not say, its service first."""
        named = list(dict.fromkeys(words(f"{self.memory.service or ''} {self.memory.observation}")))
        useful = [word for word in named if word not in STOP_WORDS and word.isalpha() and len(word) > 2]
        mine = {term_of(word): word for word in reversed(useful)}
        for term in read_query(self.task).terms:
            mine.pop(term, None)
        counts, _ = frequencies(list(mine), collection().size)
        service = term_of(self.memory.service) if self.memory.service else ""
        ordered = sorted(mine, key=lambda term: (term != service, counts.get(term, 0), term))
        rare = [mine[term] for term in ordered[:TRIED]]
        return [*([word] for word in rare[:2]), rare] if len(rare) > 1 else [rare] if rare else []
