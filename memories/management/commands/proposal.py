"""`manage.py proposal`: what would change MEMORY.md, and deciding about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, by, listing, more, verb
from claudeops.lib.humanize import exact
from memories.api.serializers import proposal_as_data, proposals_as_data
from memories.curate import proposals
from memories.management.parameters import REASON, filter_rows
from memories.models import Proposal, ProposalKind, ProposalState, Tier, Trust
from memories.queries.filters import GLOBAL, ProposalFilterSet

MOST_LISTED, LONGEST_SHOWN = 1_000, 100
LOOK = {"manage.py proposal list": "see what still waits"}


IDS = arg(metavar="ID")
BY = by("who decides (default: your account)")


@dataclass(frozen=True)
class Filters:
    state: str = arg("default: waiting", default=ProposalState.WAITING, choices=[*ProposalState.values, "any"])
    kind: str | None = arg("what it would do", choices=ProposalKind.values)
    trust: str | None = arg("that of its least trusted observation", choices=Trust.values)
    section: str | None = arg("a category of the taxonomy knowledge")
    project: str | None = arg(f"of this project's file, or {GLOBAL}", metavar="SLUG")


class Command(VerbCommand):
    help = "Proposals: what would change MEMORY.md."

    @verb
    def list_(
        self,
        *,
        tier: str | None = arg("who decides", choices=[tier.label for tier in Tier]),
        limit: int = arg(f"how many (default 50, at most {MOST_LISTED})", default=50, within=(1, MOST_LISTED)),
        filters: Filters,
    ) -> Result:
        """What waits, the newest first; or what was decided."""
        chosen = {name: value for name, value in vars(filters).items() if value and value != "any"}
        if tier is not None:
            chosen["tier"] = str(next(one.value for one in Tier if one.label == tier))
        proposed = Proposal.objects.select_related("file__project")
        rows = filter_rows(ProposalFilterSet, chosen, proposed, "manage.py proposal list --help")
        count, page = rows.count(), list(rows[:limit])
        cells: Columns = {
            "id": "pk",
            "kind": "kind",
            "state": "state",
            "tier": lambda one: Tier(one.tier).label,
            "trust": "trust",
            "text": lambda one: (one.text or one.target)[:LONGEST_SHOWN],
        }
        text = listing(page, cells, "No proposal matches.")
        text += more(len(page), count)
        actions = {f"manage.py proposal show {page[0].pk}": "see its evidence"} if page else {}
        return Result({"count": count, "proposals": proposals_as_data(page)}, text, actions)

    @verb
    def show(self, id: int) -> Result:  # noqa: A002  (the name of the argument)
        """One proposal with its evidence and decisions."""
        row = proposals.find(id)
        return Result(proposal_as_data(row), _as_text(row))

    @verb
    def approve(
        self,
        ids: Sequence[int] = IDS,
        *,
        text: str | None = arg("another text than the proposed one; with one ID"),
        reason: str = REASON,
        by: str = BY,
    ) -> Result:
        """Approve; the commit follows within a minute."""
        if text is not None and len(ids) != 1:
            raise Refusal("usage", "--text goes with one ID.", "Approve the others without it.")
        return _each(proposals.approve, ids, "approved", text=text, reason=reason, by=by)

    @verb
    def edit(
        self,
        id: int,  # noqa: A002
        text: str = arg(),
        *,
        reason: str = REASON,
        by: str = by("who edits it (default: your account)"),
    ) -> Result:
        """Change the text; a person decides from then on."""
        row = proposals.edit(id, text, by=by, reason=reason)
        action = {f"manage.py proposal approve {id}": "put it into MEMORY.md"}
        return Result(proposal_as_data(proposals.find(id)), f"Proposal {id} is now: {row.text}", action)

    @verb
    def reject(self, ids: Sequence[int] = IDS, *, reason: str = REASON, by: str = BY) -> Result:
        """Reject."""
        return _each(proposals.reject, ids, "rejected", reason=reason, by=by)

    @verb
    def undo(self, ids: Sequence[int] = IDS, *, reason: str = REASON, by: str = BY) -> Result:
        """Take back the last decision; a promotion is reverted."""
        return _each(proposals.undo, ids, "waiting again", reason=reason, by=by)


def _each(verb: Callable[..., Proposal], ids: Sequence[int], word: str, *, by: str, **given: Any) -> Result:
    """Do a verb to each; with exit code 1 when one of them was refused."""
    ids = list(dict.fromkeys(ids))
    if len(ids) == 1:
        verb(ids[0], by=by, **given)  # a refusal has its code and fix
        result = proposals.Many(tuple(ids))
    else:
        result = proposals.each(verb, ids, by=by, **given)
    lines = [f"{len(result.done)} {word}: {', '.join(map(str, result.done))}."] if result.done else []
    back = {f"manage.py proposal undo {' '.join(map(str, result.done))}": "take it back"}
    return Result(
        {"done": result.done, "refused": result.refused},
        "\n".join([*lines, *result.refused]),
        (back if result.done and verb is not proposals.undo else {}) | LOOK,
        exit_code=1 if result.refused else 0,
    )


def _as_text(row: Proposal) -> str:
    data = proposal_as_data(row)
    lines = [
        f"Proposal {row.pk}: {row.kind} in {row.section} of {row.file}, {row.get_state_display()}"
        + (f" for {Tier(row.tier).label}" if row.state == ProposalState.WAITING else ""),
        *([f"  entry: {row.target}"] if row.target else []),
        *([f"  text: {row.text}"] if row.text else []),
        f"  trust: {row.get_trust_display()}; confidence: {'-' if row.confidence is None else f'{row.confidence:.2f}'}",
        *([f"  why: {row.why}"] if row.why else []),
        *([f"  problem: {row.problem}"] if row.problem else []),
        *([f"  expires: {exact(row.expires_at)}"] if row.state == ProposalState.WAITING and row.expires_at else []),
    ]
    for one in data["evidence"]:
        where = f"memory {one['memory_id']}" if one["memory_id"] else "a memory that is gone"
        lines.append(f"  from {where} ({one['trust']}): {one['text']}")
    for one in data["decisions"]:
        back = " (taken back)" if one["undone_at"] else ""
        lines.append(f"  {exact(one['at'])} {one['verdict']} by {one['by']}{back}: {one['reason']}".rstrip(": "))
    return "\n".join(lines)
