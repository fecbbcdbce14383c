"""The observed transcripts of a session, for its page, which belongs to another app."""

from __future__ import annotations

from dataclasses import dataclass

from django import template

from memories.models import Segment, Transcript
from memories.queries.transcripts import SegmentFacts, segments_of, with_numbers
from memories.web.transcripts import draw_facts, draw_row

register = template.Library()

FACTS = 200
"""Most facts of a session on its page; the page of its transcript has all of them."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The transcripts of a session and their segments; `cut`: facts beyond FACTS are left out."""

    transcripts: list[Transcript]
    segments: list[SegmentFacts]
    cut: bool


@register.simple_tag
def observed_session(pk: int) -> Observed:
    """Return what was observed of a session. Three queries."""
    segments = segments_of(Segment.objects.filter(transcript__session=pk), FACTS)
    rows = with_numbers(Transcript.objects.filter(session=pk)).order_by("pk")
    return Observed([draw_row(row) for row in rows], draw_facts(segments.segments), segments.cut)
