"""Decide about proposals that wait: tier 1 by rules, tier 2 by a model, the rest by a person.

Each decision of a rule is a transaction. The answer of a model is carried out in the one transaction that ends its
call, so a crash leaves all of it or none. Times are UTC.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Prefetch, QuerySet

from claudeops.lib.domain_error import DomainError
from memories.capture import knowledge_rules
from memories.capture.gate import judge as gate
from memories.capture.text import fold
from memories.curate import document, proposals, rules
from memories.curate.rules import Given, Ruling
from memories.curate.triage_question import INSTRUCTIONS, PROMOTE, REJECT, Asked, Found, Verdicts, message, read
from memories.curate.words import likeness
from memories.errors import Conflict
from memories.lifecycle import vouched
from memories.llm import Answer, Unavailable, Used
from memories.llm.batch import LOOKED_AT, SIZES, Batch, Questions
from memories.llm.roles import chosen
from memories.models import (
    MemoryFile,
    MemoryFileCommit,
    Proposal,
    ProposalEvidence,
    ProposalKind,
    ProposalState,
    ProposalVerdict,
    Tier,
    Trust,
    to_utc,
    trust,
)
from memories.taxonomy import KNOWLEDGE
from memories.telemetry import record

ACTOR = "triage:"
"""How the actor begins of what a model decides, before its name."""
CHANGED = 0.5
"""Likeness from which an entry counts as the one that a proposal is about, with another text."""
NUMBER = re.compile(r"\d+(?:[.:,/-]\d+)*")
PASSED_ON, WAITS = "passed on", "waits"
"""What a rule does that decides nothing: the next tier has it, or it waits for the commit of another proposal."""


@dataclass(frozen=True, slots=True)
class Said:
    """One decision of a run, or what a dry run would decide: of tier 2 it says only that the model would be asked."""

    proposal: int
    tier: Tier
    verdict: str
    rule: str
    reason: str


@dataclass(slots=True)
class Triaged(Used):
    """What a run did. `said` are its decisions, `unread` counts proposals without a usable verdict of the model.

    `why` says why proposals still wait for the model, "" when none do.
    """

    said: list[Said] = field(default_factory=list)
    expired: int = 0

    def counts(self) -> Counter[str]:
        """Return how often each tier decided what, as "rules: promote"."""
        return Counter(f"{one.tier.label}: {one.verdict}" for one in self.said)


def triage(
    at: datetime | None = None,
    *,
    most_calls: int | None = None,
    most_seconds: float | None = None,
    dry_run: bool = False,
    source: str = "schedule",
) -> Triaged:
    """Let expire what nobody answered, decide by rules, then ask the model about what the rules left.

    No call begins after `most_calls` or `most_seconds` (None: without limit). Call it outside of a transaction. A dry
    run changes and asks nothing.
    """
    outcome, begun, when = Triaged(), time.monotonic(), to_utc(at)
    if dry_run:
        _plan(outcome)
        return outcome
    outcome.expired = proposals.expire(when)
    proposals.believe_decided()
    for pk in proposals.waiting(Tier.RULES).values_list("pk", flat=True):
        _by_rules(pk, when, outcome)
    if off := chosen("triage").off:
        _all_to_a_person(off, when, outcome)
    else:
        seconds = None if most_seconds is None else most_seconds - (time.monotonic() - begun)
        ByModel(outcome).ask_all(at=at and to_utc(at), most_calls=most_calls, most_seconds=seconds)
    _report(outcome, begun, source)
    return outcome


def given_of(row: Proposal) -> Given:
    """Return what the rules decide a proposal by, with the entries of its file as they are now."""
    rejected = Proposal.objects.filter(
        file=row.file_id,
        state=ProposalState.REJECTED,
        kind=row.kind,
        text=row.text,
        target=row.target,
        decisions__verdict=ProposalVerdict.REJECT,
        decisions__tier=Tier.PERSON,
        decisions__undone_at=None,
    )
    observations = [one.memory for one in row.evidence.all() if one.memory is not None]
    return Given(
        kind=row.kind,
        section=row.section,
        text=row.text,
        target=row.target,
        confidence=row.confidence,
        trust=row.trust,
        entries=entries_of(row.file),
        rejected_before=rejected.exists(),
        provisional=not vouched.vouched([row.text], row.file.project_id)
        and any(trust.kept_back(one) for one in observations),
    )


def entries_of(file: MemoryFile) -> tuple[str, ...]:
    """Return the texts of a file's entries."""
    return tuple(entry.text for entry in document.parse(file.text).entries)


def approved_for(file: MemoryFile) -> tuple[str, ...]:
    """Return the texts that are approved and wait for their commit, so that nothing is approved twice."""
    rows = Proposal.objects.filter(file=file, state=ProposalState.APPROVED).exclude(text="")
    return tuple(rows.order_by("pk").values_list("text", flat=True)[:LOOKED_AT])


def ruling_on(row: Proposal) -> Ruling:
    """Return what tier 1 says about a proposal: first whether its entry is still there, then the rules."""
    case = given_of(row)
    if row.conflict:
        return Ruling(ProposalVerdict.REVIEW, "conflict", "A person edited the same lines meanwhile.")
    if gone := _gone(case):
        return gone
    ruling = rules.decide(replace(case, entries=(*case.entries, *approved_for(row.file))))
    if ruling.verdict == ProposalVerdict.MERGE and not any(rules.same(ruling.entry, one) for one in case.entries):
        return Ruling(WAITS, ruling.rule, "The entry that it would be merged into waits for its commit.")
    entry = ruling.entry if ruling.verdict == ProposalVerdict.MERGE else case.target
    changes = ruling.verdict in (ProposalVerdict.PROMOTE, ProposalVerdict.MERGE) and entry
    if changes and not rules.same(ruling.merged, entry) and is_persons(row.file, entry):
        return Ruling(ProposalVerdict.REVIEW, "persons-entry", "A person wrote the entry that it changes.")
    return ruling


def _gone(case: Given) -> Ruling | None:
    """Return what follows when the entry of a change or removal is not in the file; None when it is."""
    if case.kind == ProposalKind.ADD or any(rules.same(entry, case.target) for entry in case.entries):
        return None
    like = max(case.entries, key=lambda entry: likeness(entry, case.target), default="")
    if like and likeness(like, case.target) >= CHANGED:
        return Ruling(ProposalVerdict.REVIEW, "entry-changed", f"The entry was changed meanwhile: {like[:200]}")
    return Ruling(ProposalVerdict.REJECT, "entry-gone", "The entry is gone.")


def is_persons(file: MemoryFile, entry: str) -> bool:
    """Whether a person wrote the line of an entry, or nobody knows who did."""
    for one in document.parse(file.text).entries:
        if rules.same(one.text, entry):
            commit = file.blame[one.line] if one.line < len(file.blame) else None
            if commit is None or not MemoryFileCommit.objects.filter(pk=commit, is_ours=True).exists():
                return True
    return False


def _evidence() -> Prefetch[str]:
    return Prefetch("evidence", ProposalEvidence.objects.select_related("memory").order_by("pk"))


def _by_rules(pk: int, at: datetime, outcome: Triaged) -> None:
    """Decide one proposal by the rules, in one transaction; nothing when somebody did meanwhile."""
    try:
        with transaction.atomic():
            row = proposals.locked(pk)
            if row.tier != Tier.RULES:
                return
            ruling = ruling_on(row)
            if ruling.verdict == WAITS:
                return
            verdict = _carry_out_ruling(row, ruling, at)
    except Conflict:
        return
    outcome.said.append(Said(pk, Tier.RULES, verdict, ruling.rule, ruling.reason))


def _carry_out_ruling(row: Proposal, ruling: Ruling, at: datetime) -> str:
    """Do what a rule says; return the verdict, which is "a person decides" when the proposal does not allow it."""
    arguments: dict[str, Any] = {"by": proposals.SYSTEM, "tier": Tier.RULES, "rule": ruling.rule[:32], "at": at}
    arguments["reason"] = ruling.reason
    try:
        if ruling.verdict == ProposalVerdict.PROMOTE:
            proposals.approve(row.pk, **arguments)
        elif ruling.verdict == ProposalVerdict.REJECT:
            proposals.reject(row.pk, **arguments)
        elif ruling.verdict == ProposalVerdict.MERGE:
            proposals.merge(row.pk, ruling.entry, ruling.merged, **arguments)
        elif ruling.verdict == ProposalVerdict.REVIEW:
            proposals.review(row.pk, **arguments)
        else:
            Proposal.objects.filter(pk=row.pk, state=ProposalState.WAITING, tier=Tier.RULES).update(
                tier=Tier.MODEL, why=ruling.reason
            )
            return PASSED_ON
    except Conflict:
        raise
    except DomainError as error:
        proposals.review(row.pk, **arguments | {"reason": str(error)})
        return str(ProposalVerdict.REVIEW)
    return ruling.verdict


def _all_to_a_person(why: str, at: datetime, outcome: Triaged) -> None:
    """Send what waits for a model to a person, since no model is set."""
    for pk in proposals.waiting(Tier.MODEL).values_list("pk", flat=True):
        try:
            proposals.review(pk, reason=f"No model decides: {why}.", tier=Tier.MODEL, at=at)
        except DomainError:
            continue
        outcome.said.append(Said(pk, Tier.MODEL, str(ProposalVerdict.REVIEW), "", why))


class ByModel(Questions[Proposal, Verdicts, Found]):
    """The proposals that wait for the model."""

    role, instructions, shape = "triage", INSTRUCTIONS, Verdicts
    used: Triaged

    def waiting(self) -> QuerySet[Proposal]:
        return proposals.waiting(Tier.MODEL).select_related("file").prefetch_related(_evidence())

    def still(self, row: Proposal) -> QuerySet[Proposal]:
        return Proposal.objects.filter(pk=row.pk, state=ProposalState.WAITING, tier=Tier.MODEL)

    def group(self, row: Proposal) -> tuple[int, bool]:
        """One file; and what comes from outside is judged apart from what is trusted."""
        return row.file_id, row.trust in proposals.FROM_OUTSIDE

    def leave(self, row: Proposal, at: datetime) -> bool:
        """Leave a proposal to a person when the gate holds a text that only outside text vouches for."""
        if row.trust == Trust.OPERATOR:
            return False
        text = row.text or row.target
        judged = gate(text, fold(text), taxonomy=KNOWLEDGE.slug)
        if judged.verdict != "hold":
            return False
        rule, reason = str(judged.codes[0])[:32], f"The model was not asked: {judged.reason}."
        try:
            proposals.review(row.pk, reason=reason, tier=Tier.MODEL, rule=rule, at=at)
        except DomainError:
            return True
        self.used.said.append(Said(row.pk, Tier.MODEL, str(ProposalVerdict.REVIEW), rule, reason))
        return True

    def message(self, rows: Sequence[Proposal]) -> str:
        asked = [
            Asked(row.kind, row.section, row.text, row.target, tuple(one.text for one in row.evidence.all()))
            for row in rows
        ]
        return message(rows[0].file.text, asked)

    def read(self, answer: Verdicts, count: int) -> list[Found | None]:
        return read(answer, count)

    def carry_out(
        self,
        batch: Batch[Proposal],
        verdicts: Sequence[Found | None],
        answer: Answer[Verdicts] | Unavailable,
        at: datetime | None,
    ) -> None:
        """Do what a model said about a batch, in one transaction: what was claimed by another run meanwhile is left."""
        when, decisions, unread = to_utc(at), list[Said](), 0
        with transaction.atomic():
            for row, verdict in zip(batch.rows, verdicts, strict=True):
                try:
                    mine = proposals.locked(row.pk)
                except DomainError:  # somebody decided meanwhile
                    continue
                if mine.claimed_until != batch.until or mine.tier != Tier.MODEL:
                    continue
                if (mine.text, mine.target) != (row.text, row.target):  # edited: the answer is about another text
                    self.mine(row, batch).update(claimed_until=None)
                elif verdict is not None:
                    decisions.append(_decide(mine, verdict, answer, when))
                else:
                    unread += self.in_vain(row, batch)
                    if mine.tries + 1 >= len(SIZES):
                        reason = f"The model gave no usable answer about it {len(SIZES)} times."
                        proposals.review(row.pk, by=_actor(), reason=reason, tier=Tier.MODEL, at=when)
                        decisions.append(Said(row.pk, Tier.MODEL, str(ProposalVerdict.REVIEW), "", reason))
        self.used.said += decisions
        self.used.unread += unread


def _decide(row: Proposal, finding: Found, answer: Answer[Verdicts] | Unavailable, at: datetime) -> Said:
    """Carry out one verdict. A promotion that a model may not make, or whose text says more, is a person's."""
    call = answer.call_id if isinstance(answer, Answer) else None
    arguments: dict[str, Any] = {"by": _actor(), "tier": Tier.MODEL, "at": at}
    arguments |= {"model": chosen("triage").model[:100], "call_id": call}
    verdict, reason, rule = finding.verdict, finding.reason, ""
    text = None
    if verdict == PROMOTE:
        text = finding.text or row.text
        rule, why = _refused(row, text)
        if why:
            verdict = str(ProposalVerdict.REVIEW)
            reason = f"The model would promote it, but {why}."
    try:
        if verdict == PROMOTE:
            proposals.approve(row.pk, text=text, reason=reason, **arguments)
        elif verdict == REJECT:
            proposals.reject(row.pk, reason=reason, **arguments)
        else:
            proposals.review(row.pk, reason=reason, rule=rule, **arguments)
    except DomainError as error:
        verdict, reason = str(ProposalVerdict.REVIEW), f"The model would {verdict} it, but: {error}"
        proposals.review(row.pk, reason=reason, **arguments)
    return Said(row.pk, Tier.MODEL, verdict, rule, reason)


def _refused(row: Proposal, text: str) -> tuple[str, str]:
    """Return why a model may not promote a proposal with this text: the code of a rule, and words. ("", "") if it may.

    A model that was talked into something must not get it into the file, so its text is checked like the proposal's.
    """
    case = given_of(row)
    if gone := _gone(case):
        return gone.rule, "its entry was changed or is gone"
    if why := rules.may_promote(case):
        return "only-a-person", why
    if case.target and is_persons(row.file, case.target):
        return "persons-entry", "a person wrote the entry that it changes"
    if row.kind == ProposalKind.REMOVE:
        return "", ""
    clean = fold(text)
    if why := rules.only_a_person(replace(case, text=clean)):
        return "new-in-text", f"of the text that it wrote, {why}"
    judged = gate(text, clean, taxonomy=KNOWLEDGE.slug)
    if judged.verdict != "allow" and row.trust != Trust.OPERATOR:
        return "gate", f"the gate does not allow the text that it wrote: {judged.reason}"
    sources = [row.text, row.target, *(one.text for one in row.evidence.all())]
    if new := names_more(clean, sources):
        return "new-in-text", f"the text that it wrote names something new: {new[:60]}"
    if any(rules.same(clean, entry) for entry in (*case.entries, *approved_for(row.file))):
        return "duplicate", "an entry says exactly this"
    return "", ""


def names_more(text: str, sources: Sequence[str]) -> str:
    """Return a name, path or number of `text` that none of its sources has; "" when there is none."""
    source_text = "\n".join(fold(source) for source in sources).casefold()
    for pattern in (knowledge_rules.PATH, knowledge_rules.EXACT_NAME, NUMBER):
        for match in pattern.finditer(text):
            name = match[0].strip("`").casefold()
            if name not in source_text:
                return match[0]
    return ""


def _actor() -> str:
    return f"{ACTOR}{chosen('triage').model}"


def _plan(outcome: Triaged) -> None:
    """Say what the rules would decide, and about which proposals the model would be asked."""
    for row in proposals.waiting().filter(tier__lt=Tier.PERSON).select_related("file").prefetch_related(_evidence()):
        ruling = ruling_on(row) if row.tier == Tier.RULES else Ruling("", "", row.why)
        if ruling.verdict == WAITS:
            continue
        if ruling.verdict:
            outcome.said.append(Said(row.pk, Tier.RULES, ruling.verdict, ruling.rule, ruling.reason))
        else:
            outcome.said.append(Said(row.pk, Tier.MODEL, "ask", ruling.rule, ruling.reason))
    outcome.why = chosen("triage").off


def _report(outcome: Triaged, begun: float, source: str) -> None:
    counts: dict[str, Any] = {name.replace(": ", "_").replace(" ", "_"): n for name, n in outcome.counts().items()}
    record(
        "memory.triage.completed",
        component="triage",
        source=source,
        duration_ms=int((time.monotonic() - begun) * 1000),
        level="warning" if outcome.why else "",
        decided=sum(one.verdict != PASSED_ON for one in outcome.said),
        expired=outcome.expired,
        unread=outcome.unread,
        calls=outcome.calls,
        why=outcome.why,
        **counts,
    )
