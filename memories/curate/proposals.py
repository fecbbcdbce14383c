"""The verbs of proposals: propose, decide, edit, undo, expire. Each is one function, one transaction, one decision row.

A verb changes a proposal only in the state that it expects, so of two deciders at once one is refused (`Conflict`).
Times are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest

from claudeops.lib.domain_error import DomainError
from claudeops.lib.humanize import exact
from memories.capture.fields import checked_category, checked_confidence
from memories.capture.gate import judge
from memories.capture.statement import Statement
from memories.capture.text import fold
from memories.errors import AccessDenied, Conflict, InvalidProposal, ProposalNotFound, TextHeld
from memories.lifecycle import forgotten, vouched
from memories.models import (
    Memory,
    MemoryFile,
    Proposal,
    ProposalDecision,
    ProposalEvidence,
    ProposalKind,
    ProposalState,
    ProposalVerdict,
    Reflection,
    Tier,
    Trust,
    is_person,
    lowest,
    to_utc,
)
from memories.taxonomy import KNOWLEDGE

if TYPE_CHECKING:
    from django.db.models import QuerySet

SYSTEM = "system"
LONGEST_TEXT = 1_000
KEPT = timedelta(days=7)
"""How long a proposal waits for an answer."""
"""Characters of an entry. A session is told at most 4,000 of the whole file."""
BATCH = 200
DECIDED = (
    ProposalState.APPROVED,
    ProposalState.PROMOTED,
    ProposalState.MERGED,
    ProposalState.REJECTED,
    ProposalState.EXPIRED,
)
FROM_OUTSIDE = (Trust.IMPORTED, Trust.EXTERNAL)
"""What only a person may put into the file."""

_TAKEN_BACK = {
    ProposalVerdict.PROMOTE: "Its approval was taken back.",
    ProposalVerdict.REJECT: "Its rejection was taken back.",
    ProposalVerdict.MERGE: "Its merge was taken back.",
    ProposalVerdict.EXPIRE: "It was opened again.",
    ProposalVerdict.EDIT: "Its edit was taken back.",
}


@dataclass(frozen=True, slots=True)
class Many:
    """What a verb did to several proposals: the ids that it changed, and in words why others were left."""

    done: tuple[int, ...]
    refused: tuple[str, ...] = ()


def propose(
    file: MemoryFile,
    kind: str,
    section: str,
    *,
    text: str,
    target: str = "",
    evidence: Sequence[Memory],
    confidence: float | None,
    by: str,
    key: str,
    reflection: Reflection | None = None,
    conflict: dict[str, Any] | None = None,
    tier: Tier = Tier.RULES,
    own_words: bool = False,
    at: datetime | None = None,
) -> Proposal:
    """Store a proposal that waits at `tier`, with copies of its evidence; the earlier one of the same `key` stays.

    `section` is a category of the taxonomy knowledge; `text` the new entry ("" for a removal), `target` that which it
    changes or removes. `confidence` is 0 to 1 or None. Its trust is the lowest of its evidence's; without evidence that
    of outside text, or an operator's when the person `by` proposes it. With `own_words`, some of it is said by no
    evidence but by a model here, so no operator said it. Raises InvalidProposal, or InvalidMemory for an
    unknown section.
    """
    when, kind = to_utc(at), _checked_kind(kind)
    entry = "" if kind == ProposalKind.REMOVE else checked_text(text, section)
    old_entry = fold(target) if kind != ProposalKind.ADD else ""
    if kind != ProposalKind.ADD and not old_entry:
        raise InvalidProposal(f"A proposal to {kind} an entry needs that entry's text.", field="target")
    fields: dict[str, Any] = {
        "file": file,
        "reflection": reflection,
        "kind": kind,
        "section": checked_category(section, KNOWLEDGE),
        "target": old_entry,
        "text": entry,
        "proposed_text": entry,
        "tier": tier,
        "confidence": None if confidence is None else checked_confidence(confidence),
        "trust": _lowest([*(one.trust for one in evidence), *([Trust.SESSION] if own_words and evidence else [])], by),
        "conflict": conflict or {},
        "by": by[:150],
        "created_at": when,
        "expires_at": when + KEPT,
    }
    if entry and vouched.vouched([entry], file.project_id):
        fields["trust"] = Trust.OPERATOR  # a person has decided about this very text
    with transaction.atomic():
        row, is_new = Proposal.objects.get_or_create(key=key, defaults=fields)
        if is_new:
            ProposalEvidence.objects.bulk_create(_evidence(row, evidence))
    return row


def approve(
    pk: int,
    *,
    by: str,
    text: str | None = None,
    tier: Tier = Tier.PERSON,
    reason: str = "",
    at: datetime | None = None,
    typed: bool = True,
    seen: int | None = None,
    **said: Any,
) -> Proposal:
    """Approve a waiting proposal, with `text` instead of its own if given: it waits for its commit then.

    A text that a person typed makes it as trusted as an operator; `typed` False says that no person typed it, and then
    the gate judges it. Rules and models approve nothing that comes from outside text or an import. `seen` is the id of
    the latest decision that the person saw (0: none): a later one is a conflict. `said` is more of the decision's row:
    rule, model, call. Raises ProposalNotFound, Conflict, InvalidProposal, TextHeld and AccessDenied.
    """
    when = to_utc(at)
    with transaction.atomic():
        row = locked(pk, seen=seen)
        _check_decider(row, by, tier, writes=True)
        changed = _new_text(row, text, by=by, typed=typed and tier == Tier.PERSON)
        decision = _decision(row, ProposalVerdict.PROMOTE, tier, by, reason, when, after=changed.get("text"), **said)
        _settle(row, decision, state=ProposalState.APPROVED, problem="", **changed)
        if tier == Tier.PERSON and (typed or not changed):
            vouched.withdraw([row.target] if row.target else [], row.file.project_id)
            vouched.vouch([row.text], row.file.project_id, by=by, at=when)
    return row


def reject(
    pk: int,
    *,
    by: str,
    reason: str = "",
    tier: Tier = Tier.PERSON,
    at: datetime | None = None,
    seen: int | None = None,
    **said: Any,
) -> Proposal:
    """Reject a waiting proposal. Parameters and errors as `approve`."""
    when = to_utc(at)
    with transaction.atomic():
        row = locked(pk, seen=seen)
        _check_decider(row, by, tier)
        decision = _decision(row, ProposalVerdict.REJECT, tier, by, reason, when, **said)
        _settle(row, decision, state=ProposalState.REJECTED)
    return row


def merge(
    pk: int,
    entry_text: str,
    merged_text: str,
    *,
    by: str = SYSTEM,
    tier: Tier = Tier.RULES,
    reason: str = "",
    at: datetime | None = None,
    **said: Any,
) -> Proposal:
    """Merge an addition into the entry that says nearly the same: it becomes an approved change of that entry.

    When the entry says it already, nothing is left to commit, and the proposal is merged at once. Errors as `approve`.
    """
    when = to_utc(at)
    with transaction.atomic():
        row = locked(pk)
        if row.kind != ProposalKind.ADD:
            raise InvalidProposal(f"Proposal {pk} is to {row.kind} an entry; only an addition is merged into one.")
        merged, entry = checked_text(merged_text, row.section), fold(entry_text)
        is_known = merged == entry
        _check_decider(row, by, tier, writes=not is_known)
        decision = _decision(row, ProposalVerdict.MERGE, tier, by, reason, when, after=merged, **said)
        state = ProposalState.MERGED if is_known else ProposalState.APPROVED
        wrote = _that_wrote(row.file_id, entry)
        if is_known and wrote is not None:
            _raise_count(wrote, 1)
        count = 1 + (wrote.merged_count if wrote else 0)
        _settle(
            row,
            decision,
            state=state,
            kind=ProposalKind.CHANGE,
            target=entry,
            text=merged,
            problem="",
            merged_count=0 if is_known else count,
        )
    return row


def review(
    pk: int,
    *,
    by: str = SYSTEM,
    reason: str,
    tier: Tier = Tier.RULES,
    conflict: dict[str, Any] | None = None,
    at: datetime | None = None,
    **said: Any,
) -> Proposal:
    """Send a proposal to a person, who has the whole time from now; an approved one that cannot be committed, too.

    `tier` is who says so. Raises ProposalNotFound, and Conflict for one that is decided or waits for a person already.
    """
    when = to_utc(at)
    with transaction.atomic():
        row = locked(pk, states=(ProposalState.WAITING, ProposalState.APPROVED))
        if row.state == ProposalState.WAITING and row.tier == Tier.PERSON:
            raise Conflict(f"Proposal {pk} waits for a person already.")
        decision = _decision(row, ProposalVerdict.REVIEW, tier, by, reason, when, **said)
        row.decisions.filter(verdict__in=_TAKEN_BACK, undone_at=None).exclude(verdict=ProposalVerdict.EDIT).update(
            undone_at=when
        )
        extra = {} if conflict is None else {"conflict": conflict}
        _wait_for_person(row, decision, **extra)
    return row


def edit(
    pk: int,
    text: str,
    *,
    by: str,
    reason: str = "",
    at: datetime | None = None,
    typed: bool = True,
    seen: int | None = None,
) -> Proposal:
    """Change the text of a waiting proposal, without deciding about it: from then on only a person decides.

    Parameters and errors as `approve`. The same text changes nothing.
    """
    when = to_utc(at)
    with transaction.atomic():
        row = locked(pk, seen=seen)
        _check_decider(row, by, Tier.PERSON)
        changed = _new_text(row, text, by=by, typed=typed)
        if not changed:
            return row
        decision = _decision(row, ProposalVerdict.EDIT, Tier.PERSON, by, reason, when, after=changed["text"])
        decision.save()
        _update(row, tier=Tier.PERSON, expires_at=when + KEPT, claimed_until=None, **changed)
    return row


def undo(pk: int, *, by: str, reason: str = "", at: datetime | None = None) -> Proposal:
    """Take back the last decision: the proposal waits for a person, with the text that it had before.

    The commit of a promoted one is reverted first. Its new decision says in words what was taken back. Raises
    ProposalNotFound, and InvalidProposal when nobody decided anything yet.
    """
    when, row = to_utc(at), find(pk)
    _check_decider(row, by, Tier.PERSON)
    if row.state == ProposalState.PROMOTED:
        _revert(row, by)
    with transaction.atomic():
        row = locked(pk, states=tuple(ProposalState))
        last = row.decisions.filter(undone_at=None, verdict__in=_TAKEN_BACK).order_by("-at", "-pk").first()
        if last is None:
            raise InvalidProposal(f"Nobody decided about proposal {pk} yet.")
        verdict = ProposalVerdict.REOPEN if last.verdict == ProposalVerdict.EXPIRE else ProposalVerdict.UNDO
        words = _TAKEN_BACK[ProposalVerdict(last.verdict)]
        decision = _decision(
            row, verdict, Tier.PERSON, by, f"{words} {reason}".strip(), when, before=row.text, after=last.before
        )
        changed: dict[str, Any] = {"text": last.before, "commit": "", "problem": ""}
        if last.verdict == ProposalVerdict.MERGE:
            if row.state == ProposalState.MERGED and (wrote := _that_wrote(row.file_id, row.target)) is not None:
                _raise_count(wrote, -1)
            changed |= {"kind": ProposalKind.ADD, "target": "", "merged_count": 0}
        row.decisions.filter(pk=last.pk).update(undone_at=when)
        changed["trust"] = _trust_of(row)
        if last.verdict == ProposalVerdict.PROMOTE and last.tier == Tier.PERSON:
            vouched.withdraw([row.text], row.file.project_id)
        _wait_for_person(row, decision, **changed)
    return row


def believe_decided() -> int:
    """Let rules and models decide about what waits for its trust alone, since a person stands behind its text.

    Returns how many. So a memory that a person confirmed needs no second decision for MEMORY.md.
    """
    waiting = Proposal.objects.filter(state=ProposalState.WAITING, trust__in=FROM_OUTSIDE, conflict={})
    believed = 0
    for row in waiting.exclude(text="").select_related("file"):
        if vouched.vouched([row.text], row.file.project_id):
            mine = waiting.filter(pk=row.pk, text=row.text)
            believed += mine.update(trust=Trust.OPERATOR, tier=Tier.RULES, claimed_until=None)
    return believed


def expire(at: datetime | None = None) -> int:
    """Let expire what nobody answered in time; returns how many. A person may open each of them again.

    What waited for a model that did not answer goes to a person instead, with the whole time from now.
    """
    when = to_utc(at)
    due = Proposal.objects.filter(state=ProposalState.WAITING, expires_at__lte=when).order_by("expires_at", "pk")
    expired = 0
    while rows := list(due.values_list("pk", "tier")[:BATCH]):
        for pk, tier in rows:
            try:
                expired += _expire(pk, tier, when)
            except DomainError:  # somebody decided meanwhile
                continue
    return expired


def mark_promoted(pk: int, sha: str, *, at: datetime | None = None) -> Proposal:
    """Note the commit `sha` of an approved proposal; a second time changes nothing. Raises Conflict for another state.

    `at` is unused: when it was decided stays.
    """
    with transaction.atomic():
        row = locked(pk, states=(ProposalState.APPROVED, ProposalState.PROMOTED))
        if row.state == ProposalState.PROMOTED:
            if row.commit != sha:
                raise Conflict(f"Proposal {pk} is in MEMORY.md already, by commit {row.commit[:12]}.")
            return row
        _update(row, state=ProposalState.PROMOTED, commit=sha, problem="")
    return row


def each(verb: Callable[..., Proposal], pks: Iterable[int], **given: Any) -> Many:
    """Do `verb` to each proposal by itself; what cannot be done is left, and said."""
    ids, refused = [], []
    for pk in pks:
        try:
            verb(pk, **given)
        except DomainError as error:
            refused.append(str(error))
        else:
            ids.append(pk)
    return Many(tuple(ids), tuple(refused))


def waiting(tier: Tier | None = None) -> QuerySet[Proposal]:
    """Return what waits at `tier` (None: at any), the oldest first, by an index."""
    rows = Proposal.objects.filter(state=ProposalState.WAITING)
    return (rows if tier is None else rows.filter(tier=tier)).order_by("tier", "pk")


def find(pk: int) -> Proposal:
    """Return a proposal. Raises ProposalNotFound."""
    row = Proposal.objects.select_related("file__project").filter(pk=pk).first()
    if row is None:
        raise ProposalNotFound(f"There is no proposal {pk}.", "List what there is: manage.py proposal list")
    return row


def locked(pk: int, *, states: Sequence[str] = (ProposalState.WAITING,), seen: int | None = None) -> Proposal:
    """Return a proposal locked within a transaction. Raises ProposalNotFound, and Conflict for what was decided.

    With `seen`, the id of the latest decision that a person saw, a later one is a Conflict, too.
    """
    row = Proposal.objects.select_related("file__project").select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise ProposalNotFound(f"There is no proposal {pk}.", "List what there is: manage.py proposal list")
    if row.state not in states:
        raise Conflict(f"{_who(row)} {_did(row)} proposal {pk} meanwhile{_when(row)}.")
    if seen is not None and (last := row.decisions.order_by("-at", "-pk").first()) is not None and last.pk > seen:
        raise Conflict(f"{last.by} changed proposal {pk} meanwhile, at {exact(last.at)}. Look at it again.")
    return row


def checked_text(text: str, section: str) -> str:
    """Return the text of an entry as it is stored: one line, its credentials masked. Raises InvalidProposal."""
    entry = Statement(checked_category(section, KNOWLEDGE), text, taxonomy=KNOWLEDGE.slug).observation
    if not any(character.isalnum() for character in entry):
        raise InvalidProposal("The text is empty; write what is known, in one sentence.", field="text")
    if len(entry) > LONGEST_TEXT:
        raise InvalidProposal(f"The text has {len(entry):,} characters; at most {LONGEST_TEXT:,} fit.", field="text")
    if why := forgotten.refusal(entry):
        raise InvalidProposal(why, forgotten.FIX, field="text")
    return entry


def _that_wrote(file_id: int, entry: str) -> Proposal | None:
    """Return the latest proposal that wrote an entry of this text; None for a person's entry."""
    rows = Proposal.objects.filter(file=file_id, text=entry, state__in=(ProposalState.APPROVED, ProposalState.PROMOTED))
    return rows.order_by("-decided_at", "-pk").first()


def _raise_count(row: Proposal, by: int) -> None:
    Proposal.objects.filter(pk=row.pk).update(merged_count=Greatest(F("merged_count") + by, 0))


def _new_text(row: Proposal, text: str | None, *, by: str, typed: bool) -> dict[str, Any]:
    """Return the columns that a new text changes; none for the same text."""
    if text is None or row.kind == ProposalKind.REMOVE:
        return {}
    entry = checked_text(text, row.section)
    if entry == row.text:
        return {}
    if typed and is_person(by):
        return {"text": entry, "trust": Trust.OPERATOR}
    judged = judge(text, entry, taxonomy=KNOWLEDGE.slug)
    if judged.verdict != "allow":
        raise TextHeld(
            f"The text is not allowed: {judged.reason}. Nothing was changed.",
            "Let a person edit the proposal in the inbox.",
            field="text",
        )
    return {"text": entry}


def _check_decider(row: Proposal, by: str, tier: Tier, *, writes: bool = False) -> None:
    if tier == Tier.PERSON and not is_person(by):
        raise AccessDenied(f"A person decides about proposal {row.pk}, not {by or 'nobody'!r}.")
    if writes and tier != Tier.PERSON and row.trust in FROM_OUTSIDE:
        raise AccessDenied(f"Proposal {row.pk} comes from outside text or an import; a person decides about it.")


def _decision(
    row: Proposal,
    verdict: ProposalVerdict,
    tier: int,
    by: str,
    reason: str,
    at: datetime,
    *,
    before: str | None = None,
    after: str | None = None,
    **said: Any,
) -> ProposalDecision:
    """Return a decision, not stored. Its texts are those of the proposal unless they are given."""
    return ProposalDecision(
        proposal=row,
        tier=tier,
        verdict=verdict,
        reason=fold(reason),
        by=by[:150],
        at=at,
        before=row.text if before is None else before,
        after=row.text if after is None else after,
        **said,
    )


def _settle(row: Proposal, decision: ProposalDecision, **columns: Any) -> None:
    """Store a decision that ends the waiting."""
    decision.save()
    _update(row, decided_at=decision.at, decided_by=decision.by, why=decision.reason, claimed_until=None, **columns)


def _wait_for_person(row: Proposal, decision: ProposalDecision, **columns: Any) -> None:
    """Store a decision after which a person decides; the task item is sent anew."""
    decision.save()
    _update(
        row,
        state=ProposalState.WAITING,
        tier=Tier.PERSON,
        decided_at=None,
        decided_by="",
        why=decision.reason,
        expires_at=decision.at + KEPT,
        claimed_until=None,
        notified_at=None,
        **columns,
    )


def _update(row: Proposal, **columns: Any) -> None:
    """Change the row if its state is still that which was read; SQLite has no locks of rows."""
    if not Proposal.objects.filter(pk=row.pk, state=row.state).update(**columns):
        raise Conflict(f"Somebody decided about proposal {row.pk} meanwhile.")
    for name, value in columns.items():
        setattr(row, name, value)


def _expire(pk: int, tier: int, at: datetime) -> int:
    if tier == Tier.MODEL:
        review(pk, reason="No model decided about it in time.", tier=Tier.MODEL, at=at)
        return 0
    with transaction.atomic():
        row = locked(pk)
        if row.expires_at is None or row.expires_at > at:
            return 0
        reason = f"Nobody answered it within {KEPT.days} days."
        decision = _decision(row, ProposalVerdict.EXPIRE, row.tier, SYSTEM, reason, at)
        _settle(row, decision, state=ProposalState.EXPIRED)
    return 1


def _revert(row: Proposal, by: str) -> None:
    """Revert the commit of a promoted proposal. Raises MemoriesError where that cannot be done."""
    from memories.curate import files

    if not files.is_reverted(row.file, row.commit):
        files.revert(row.file, row.commit, by=by, settles=False)


def _evidence(row: Proposal, evidence: Sequence[Memory]) -> list[ProposalEvidence]:
    unique = {one.pk: one for one in evidence}
    return [
        ProposalEvidence(
            proposal=row,
            memory=one,
            memory_uuid=one.uuid,
            text=one.observation,
            trust=one.trust,
            session_id=one.session_id,
        )
        for one in unique.values()
    ]


def _trust_of(row: Proposal) -> Trust:
    """Return the trust of a proposal by the decisions that stand: a person's text, or its evidence."""
    edits = row.decisions.filter(
        Q(verdict=ProposalVerdict.EDIT) | Q(verdict=ProposalVerdict.PROMOTE), tier=Tier.PERSON, undone_at=None
    )
    if any(one.before != one.after and is_person(one.by) for one in edits):
        return Trust.OPERATOR
    return _lowest(row.evidence.values_list("trust", flat=True), row.by)


def _lowest(trusts: Iterable[str], by: str) -> Trust:
    levels = list(trusts)
    if levels:
        return lowest(*levels)
    return Trust.OPERATOR if is_person(by) else Trust.EXTERNAL


def _checked_kind(kind: str) -> ProposalKind:
    if kind not in ProposalKind.values:
        raise InvalidProposal(f"kind is {kind!r}; allowed are {', '.join(ProposalKind.values)}.", field="kind")
    return ProposalKind(kind)


def _who(row: Proposal) -> str:
    return {"": "Somebody", SYSTEM: "The system"}.get(row.decided_by, row.decided_by)


def _did(row: Proposal) -> str:
    if row.state == ProposalState.WAITING:
        return "opened again"
    if row.state == ProposalState.EXPIRED:
        return "let expire"
    return "approved" if row.state == ProposalState.PROMOTED else str(row.state)


def _when(row: Proposal) -> str:
    return f", at {exact(row.decided_at)}" if row.decided_at else ""
