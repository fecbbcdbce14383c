"""Make the parts of a transcript with their stages, and send a failed part again."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
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
    """Let a failed part wait again, from the stage that failed. Raises Conflict when it has not failed."""
    pk = part if isinstance(part, int) else part.pk
    with transaction.atomic():
        changed = TranscriptPart.objects.filter(pk=pk, state=PartState.FAILED).update(state=PartState.WAITING)
        if not changed:
            raise Conflict("This part has not failed; it waits, or is done.", "Look at the transcript again.")
        Stage.objects.filter(part=pk, state=StageState.FAILED).update(
            state=StageState.WAITING,
            attempts=0,
            not_before=None,
            problem=f"sent again by {by}, {at or timezone.now():%Y-%m-%d %H:%M} UTC",
        )
    return TranscriptPart.objects.get(pk=pk)
