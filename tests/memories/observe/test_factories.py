"""The factories of observed transcripts make rows that fit together."""

from __future__ import annotations

import pytest

from memories.models import StageName
from tests.support.factories import FactFactory, GateDecisionFactory, PartFactory, SegmentFactory, StageFactory

pytestmark = pytest.mark.django_db


def test_parts_and_segments_are_numbered_within_their_transcript() -> None:
    part = PartFactory()
    later = PartFactory(transcript=part.transcript)
    segment = SegmentFactory(part=later)
    fact, another = FactFactory(segment=segment), FactFactory(segment=segment)
    stages = [StageFactory(part=part, name=name) for name in StageName]

    assert (part.number, later.number, later.start) == (1, 2, part.end)
    assert segment.transcript == part.transcript
    assert (fact.number, another.number) == (1, 2)
    assert fact.source == f"session-{part.transcript.cli_session_id}-segment-1"
    assert [stage.position for stage in stages] == [1, 2, 3, 4, 5, 6, 7]
    assert GateDecisionFactory(fact=fact).fact == fact
