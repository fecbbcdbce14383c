"""`/api/proposals`: list, show, edit, approve, reject and undo, by the verbs of the inbox.

Proposals hold what nobody allowed yet, so that reading them needs the scope review, and deciding write as well.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from claudeops.lib.api_errors import Given, Whole, check_names, narrowed, page_of
from memories.access import visible_projects
from memories.api.serializers import proposal_as_data, proposals_as_data
from memories.bearer import access_in, needs
from memories.curate import proposals as verbs
from memories.errors import AccessDenied, ProposalNotFound
from memories.models import Proposal, Scope
from memories.queries.filters import ProposalFilterSet, visible_proposals

AFTER = {"after": "`next` of the page before."}

router = Router(tags=["proposals"])


class ProposalOut(Schema):
    """One proposed change of a MEMORY.md. Times are UTC."""

    id: int
    uuid: UUID
    project: str | None = Field(description="The project of the file; null = the global one.")
    kind: str = Field(description="add, change or remove.")
    section: str
    target: str = Field(description="The entry that it changes or removes.")
    text: str
    proposed_text: str = Field(description="The text before anybody edited it.")
    state: str = Field(description="waiting, approved, promoted, merged, rejected or expired.")
    tier: int = Field(description="Who decides: 1 rules, 2 a model, 3 a person.")
    confidence: float | None
    trust: str = Field(description="That of its least trusted observation.")
    why: str
    conflict: dict[str, Any]
    by: str
    created_at: datetime
    expires_at: datetime | None
    decided_at: datetime | None
    decided_by: str
    commit: str
    problem: str


class EvidenceOut(Schema):
    memory_id: int | None
    memory_uuid: UUID
    session_id: int | None
    text: str
    trust: str


class ProposalDecisionOut(Schema):
    id: int
    tier: int
    verdict: str
    rule: str
    reason: str
    by: str
    at: datetime
    before: str
    after: str
    model: str
    undone_at: datetime | None


class WholeProposal(ProposalOut):
    evidence: list[EvidenceOut]
    decisions: list[ProposalDecisionOut] = Field(description="The oldest first; the last one's id is `seen`.")


class ProposalsOut(Schema):
    proposals: list[ProposalOut]
    next: str


class DecideIn(Given):
    reason: str = Field("", max_length=500)
    seen: Whole | None = Field(None, ge=0, le=2**63 - 1, description="The latest decision that was seen; 0 = none.")


class ApproveIn(DecideIn):
    text: str | None = Field(None, max_length=10_000, description="Another text, which passes the gate.")


class EditIn(DecideIn):
    text: str = Field(max_length=10_000)


class UndoIn(Given):
    reason: str = Field("", max_length=500)


@router.get(
    "/proposals",
    **needs(Scope.REVIEW, ProposalsOut, filters=ProposalFilterSet, also=AFTER),
    summary="Proposals, 50 a page, the newest first",
)
def proposals(request: HttpRequest) -> dict[str, Any]:
    access = access_in(request)
    check_names(request, [*ProposalFilterSet.base_filters, *AFTER])
    filters = ProposalFilterSet(request.GET, queryset=visible_proposals(access))
    filters.filters["project"].queryset = visible_projects(access)  # another project is as unknown as one that is not
    rows, further = page_of(narrowed(filters), "created_at", request.GET.get("after", ""))
    return {"proposals": proposals_as_data(rows), "next": further}


@router.get(
    "/proposals/{int:proposal_id}",
    **needs(Scope.REVIEW, WholeProposal),
    summary="One proposal with its evidence and decisions",
)
def proposal(request: HttpRequest, proposal_id: int) -> dict[str, Any]:
    return proposal_as_data(_visible(request, proposal_id))


@router.put("/proposals/{int:proposal_id}", **needs(Scope.WRITE, WholeProposal), summary="Change the text")
def edit(request: HttpRequest, proposal_id: int, given: EditIn) -> dict[str, Any]:
    """The text passes the gate. From then on only a person decides."""
    pk, by = _changeable(request, proposal_id), access_in(request).actor
    verbs.edit(pk, given.text, by=by, reason=given.reason, seen=given.seen, typed=False)
    return proposal_as_data(_visible(request, pk))


@router.post("/proposals/{int:proposal_id}/approve", **needs(Scope.WRITE, WholeProposal), summary="Approve")
def approve(request: HttpRequest, proposal_id: int, given: ApproveIn) -> dict[str, Any]:
    """Its commit follows within a minute."""
    pk, by = _changeable(request, proposal_id), access_in(request).actor
    verbs.approve(pk, by=by, text=given.text, reason=given.reason, seen=given.seen, typed=False)
    return proposal_as_data(_visible(request, pk))


@router.post("/proposals/{int:proposal_id}/reject", **needs(Scope.WRITE, WholeProposal), summary="Reject")
def reject(request: HttpRequest, proposal_id: int, given: DecideIn) -> dict[str, Any]:
    pk, by = _changeable(request, proposal_id), access_in(request).actor
    verbs.reject(pk, by=by, reason=given.reason, seen=given.seen)
    return proposal_as_data(_visible(request, pk))


@router.post("/proposals/{int:proposal_id}/undo", **needs(Scope.WRITE, WholeProposal), summary="Undo the last decision")
def undo(request: HttpRequest, proposal_id: int, given: UndoIn) -> dict[str, Any]:
    """It waits for a person again; the commit of a promoted one is reverted."""
    pk, by = _changeable(request, proposal_id), access_in(request).actor
    verbs.undo(pk, by=by, reason=given.reason)
    return proposal_as_data(_visible(request, pk))


def _visible(request: HttpRequest, pk: int) -> Proposal:
    row = visible_proposals(access_in(request)).filter(pk=pk).first() if pk < 2**63 else None
    if row is None:
        raise ProposalNotFound(f"There is no proposal {pk}.", "List them: GET /api/proposals")
    return row


def _changeable(request: HttpRequest, pk: int) -> int:
    """Return the id of a proposal that the caller may decide about."""
    access = access_in(request)
    access.require(Scope.REVIEW)
    row = _visible(request, pk)
    if access.confined and row.file.project_id != access.project_id:
        raise AccessDenied(
            f"Proposal {pk} is about the global file; a token with a project only reads it.",
            "Ask with a token without a project.",
        )
    return row.pk
