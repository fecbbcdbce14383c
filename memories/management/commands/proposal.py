"""`manage.py proposal`: what would change MEMORY.md, and deciding about it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import QuerySet

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from claudeops.lib.humanize import exact
from memories.api.serializers import proposal_as_data, proposals_as_data
from memories.curate import proposals
from memories.models import Proposal, ProposalKind, ProposalState, Tier, Trust
from memories.queries.filters import GLOBAL, ProposalFilterSet

MOST_LISTED, LONGEST_SHOWN = 1_000, 100
LOOK = (NextAction("manage.py proposal list", "see what still waits"),)


def _of_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state", default=ProposalState.WAITING, choices=[*ProposalState.values, "any"], help="default: waiting"
    )
    parser.add_argument("--tier", choices=[tier.label for tier in Tier], help="who decides")
    parser.add_argument("--kind", choices=ProposalKind.values, help="what it would do")
    parser.add_argument("--trust", choices=Trust.values, help="that of its least trusted observation")
    parser.add_argument("--section", help="a category of the taxonomy knowledge")
    parser.add_argument("--project", metavar="SLUG", help=f"of this project's file, or {GLOBAL}")
    parser.add_argument("--limit", type=int, default=50, help=f"how many (default 50, at most {MOST_LISTED})")


def _of_show(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=int)


def _of_many(parser: ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", type=int, nargs="+")
    parser.add_argument("--reason", default="", help="why, for the history")
    parser.add_argument("--by", default="", help="who decides (default: your account)")


def _of_approve(parser: ArgumentParser) -> None:
    _of_many(parser)
    parser.add_argument("--text", help="another text than the proposed one; with one ID")


def _of_edit(parser: ArgumentParser) -> None:
    _of_show(parser)
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--reason", default="", help="why, for the history")
    parser.add_argument("--by", default="", help="who edits it (default: your account)")


class Command(VerbCommand):
    help = "Proposals: what would change MEMORY.md."
    noun = "proposal"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "list": Verb("What waits, the newest first; or what was decided.", self.list, _of_list),
            "show": Verb("One proposal with its evidence and decisions.", self.show, _of_show),
            "approve": Verb("Approve; the commit follows within a minute.", self.approve, _of_approve),
            "edit": Verb("Change the text; a person decides from then on.", self.edit, _of_edit),
            "reject": Verb("Reject.", self.reject, _of_many),
            "undo": Verb("Take back the last decision; a promotion is reverted.", self.undo, _of_many),
        }

    def list(self, limit: int, tier: str | None, **given: Any) -> Result:
        if not 1 <= limit <= MOST_LISTED:
            raise Refusal("usage", f"--limit is {limit}; allowed is 1 to {MOST_LISTED}.")
        chosen = {name: value for name, value in given.items() if value and value != "any"}
        if tier is not None:
            chosen["tier"] = str(next(one.value for one in Tier if one.label == tier))
        rows = _narrowed(chosen)
        count, found = rows.count(), list(rows[:limit])
        cells = [
            (
                str(one.pk),
                one.kind,
                one.state,
                Tier(one.tier).label,
                one.trust,
                (one.text or one.target)[:LONGEST_SHOWN],
            )
            for one in found
        ]
        text = table(["id", "kind", "state", "tier", "trust", "text"], cells) if found else "No proposal matches."
        if count > len(found):
            text += f"\n{len(found):,} of {count:,}; --limit shows more."
        actions = [NextAction(f"manage.py proposal show {found[0].pk}", "see its evidence")] if found else []
        return Result({"count": count, "proposals": proposals_as_data(found)}, text, actions)

    def show(self, id: int) -> Result:  # noqa: A002  (the name of the argument)
        row = proposals.find(id)
        return Result(proposal_as_data(row), _as_text(row))

    def approve(self, ids: Sequence[int], text: str | None, reason: str, by: str) -> Result:
        if text is not None and len(ids) != 1:
            raise Refusal("usage", "--text goes with one ID.", "Approve the others without it.")
        return _each(proposals.approve, ids, "approved", text=text, reason=reason, by=by)

    def edit(self, id: int, text: str, reason: str, by: str) -> Result:  # noqa: A002
        row = proposals.edit(id, text, by=by or current_user(), reason=reason)
        action = NextAction(f"manage.py proposal approve {id}", "put it into MEMORY.md")
        return Result(proposal_as_data(proposals.find(id)), f"Proposal {id} is now: {row.text}", [action])

    def reject(self, ids: Sequence[int], reason: str, by: str) -> Result:
        return _each(proposals.reject, ids, "rejected", reason=reason, by=by)

    def undo(self, ids: Sequence[int], reason: str, by: str) -> Result:
        return _each(proposals.undo, ids, "waiting again", reason=reason, by=by)


def _narrowed(given: dict[str, str]) -> QuerySet[Proposal]:
    filters = ProposalFilterSet(given, queryset=Proposal.objects.select_related("file__project"))
    if not filters.is_valid():
        name, errors = next(iter(filters.errors.items()))
        raise Refusal("usage", f"--{name} is {given.get(name)!r}: {errors[0]}", "manage.py proposal list --help")
    rows: QuerySet[Proposal] = filters.qs
    return rows


def _each(verb: Callable[..., Proposal], ids: Sequence[int], word: str, *, by: str, **given: Any) -> Result:
    """Do a verb to each; with exit code 1 when one of them was refused."""
    ids = list(dict.fromkeys(ids))
    if len(ids) == 1:
        verb(ids[0], by=by or current_user(), **given)  # a refusal has its code and fix
        done = proposals.Many(tuple(ids))
    else:
        done = proposals.each(verb, ids, by=by or current_user(), **given)
    lines = [f"{len(done.done)} {word}: {', '.join(map(str, done.done))}."] if done.done else []
    back = [NextAction(f"manage.py proposal undo {' '.join(map(str, done.done))}", "take it back")]
    return Result(
        {"done": done.done, "refused": done.refused},
        "\n".join([*lines, *done.refused]),
        [*(back if done.done and verb is not proposals.undo else []), *LOOK],
        exit_code=1 if done.refused else 0,
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
