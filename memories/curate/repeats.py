"""Whether a change was proposed before: one that waits or is approved still, or that a person rejected."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from memories.capture.text import fold
from memories.models import MemoryFile, Proposal, ProposalDecision, ProposalState, ProposalVerdict, Tier

MOST = 2_000
"""Earlier proposals of a file that are looked at, the newest first."""


class Repeats:
    """The changes of one file that are not to be proposed again, read by one query."""

    def __init__(self, file: MemoryFile) -> None:
        rejections = ProposalDecision.objects.filter(
            proposal=OuterRef("pk"), tier=Tier.PERSON, verdict=ProposalVerdict.REJECT, undone_at=None
        )
        open_ = Q(state__in=(ProposalState.WAITING, ProposalState.APPROVED))
        rows = Proposal.objects.filter(open_ | (Q(state=ProposalState.REJECTED) & Exists(rejections)), file=file)
        latest = rows.order_by("-created_at", "-pk").values_list("kind", "text", "proposed_text", "target")[:MOST]
        self._known = {key(kind, text, target) for kind, *texts, target in latest for text in texts}

    def has(self, kind: str, text: str, target: str) -> bool:
        return key(kind, text, target) in self._known

    def note(self, kind: str, text: str, target: str) -> None:
        self._known.add(key(kind, text, target))


def key(kind: str, text: str, target: str) -> tuple[str, str, str]:
    """Return what makes two changes one: case, spaces and the stop at the end aside."""
    return str(kind), _bare(text), _bare(target)


def _bare(text: str) -> str:
    return fold(text).rstrip(".;, ").casefold()
