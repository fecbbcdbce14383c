"""Make the parts of a transcript with their stages, and send a failed part again."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from memories.errors import Conflict
from memories.models import PartState, Stage, StageName, StageState, Transcript, TranscriptPart

STAGES = tuple(StageName)
"""In the order in which a part goes through them."""


def add_part(transcript: Transcript, number: int, start: int, end: int, *, at: datetime) -> TranscriptPart:
    """Store a part (the bytes from `start` to `end`) that waits with all of its stages.

    Call it in the transaction that moves `observed_to`. Raises IntegrityError when there is one of this number.
    """
    part = TranscriptPart.objects.create(transcript=transcript, number=number, start=start, end=end, created_at=at)
    Stage.objects.bulk_create(Stage(part=part, name=name, position=position) for position, name in enumerate(STAGES, 1))
    return part


def send_again(part: TranscriptPart | int, *, by: str, at: datetime | None = None) -> TranscriptPart:
    """Let a part that failed, or is unreadable, wait again, from the stage that stopped. Raises Conflict for others."""
    pk = part if isinstance(part, int) else part.pk
    with transaction.atomic():
        rows = TranscriptPart.objects.filter(pk=pk, state__in=(PartState.FAILED, PartState.UNREADABLE))
        changed = rows.exclude(stages__state=StageState.RUNNING).update(state=PartState.WAITING)
        if not changed:
            raise Conflict(
                "This part has not failed; it waits, is being observed, or is done.", "Look at the transcript again."
            )
        stopped = Q(state=StageState.FAILED) | Q(state=StageState.WAITING, not_before__isnull=False)
        Stage.objects.filter(stopped, part=pk).update(
            state=StageState.WAITING,
            attempts=0,
            not_before=None,
            problem=f"sent again by {by}, {at or timezone.now():%Y-%m-%d %H:%M} UTC",
        )
    return TranscriptPart.objects.get(pk=pk)
