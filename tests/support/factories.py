"""Rows for tests, as small as the test needs them."""

from __future__ import annotations

import factory
from factory.django import DjangoModelFactory

from memories.models import (
    ArrivedBy,
    Fact,
    GateDecision,
    Memory,
    MemoryFile,
    Project,
    Proposal,
    ProposalEvidence,
    ProposalKind,
    Segment,
    Source,
    Stage,
    StageName,
    Transcript,
    TranscriptKind,
    TranscriptPart,
)
from sessions_app.models import Agent, CooldownAction, Event, Session, Status


class ProjectFactory(DjangoModelFactory):
    class Meta:
        model = Project

    slug = factory.Sequence(lambda n: f"project-{n}")


class AgentFactory(DjangoModelFactory):
    class Meta:
        model = Agent

    slug = factory.Sequence(lambda n: f"agent-{n}")


class SessionFactory(DjangoModelFactory):
    class Meta:
        model = Session

    agent = factory.SubFactory(AgentFactory)
    status = Status.COMPLETED


class MemoryFactory(DjangoModelFactory):
    class Meta:
        model = Memory

    service = "jellyfin"
    category = "timing"
    observation = factory.Sequence(lambda n: f"Observation number {n}")
    source = Source.RUN
    tier = 1


class EventFactory(DjangoModelFactory):
    class Meta:
        model = Event

    session = factory.SubFactory(SessionFactory)
    message = factory.Sequence(lambda n: f"Event number {n}")
    fingerprint = factory.Sequence(lambda n: f"{n:064x}")


class CooldownActionFactory(DjangoModelFactory):
    class Meta:
        model = CooldownAction

    session = factory.SubFactory(SessionFactory)
    action = "restart"
    service = "jellyfin"
    outcome = "success"
    fingerprint = factory.Sequence(lambda n: f"{n:064x}")


class TranscriptFactory(DjangoModelFactory):
    """A developer's session; give `session` for one of ours."""

    class Meta:
        model = Transcript

    key = factory.LazyAttribute(lambda made: f"session:{made.cli_session_id}")
    kind = TranscriptKind.CLAUDE
    arrived_by = ArrivedBy.HOOK
    cli_session_id = factory.Sequence(lambda n: f"00000000-0000-4000-8000-{n:012d}")
    host = "here"
    path = factory.LazyAttribute(lambda made: f"/srv/transcripts/{made.cli_session_id}.jsonl")
    folder = "/srv/shop"


class PartFactory(DjangoModelFactory):
    """A part of 1,000 bytes, the next of its transcript, without stages."""

    class Meta:
        model = TranscriptPart

    transcript = factory.SubFactory(TranscriptFactory)
    number = factory.LazyAttribute(lambda made: made.transcript.parts.count() + 1)
    start = factory.LazyAttribute(lambda made: (made.number - 1) * 1000)
    end = factory.LazyAttribute(lambda made: made.start + 1000)


class StageFactory(DjangoModelFactory):
    class Meta:
        model = Stage

    part = factory.SubFactory(PartFactory)
    name = StageName.PREPARE
    position = factory.LazyAttribute(lambda made: list(StageName).index(StageName(made.name)) + 1)


class SegmentFactory(DjangoModelFactory):
    class Meta:
        model = Segment

    part = factory.SubFactory(PartFactory)
    transcript = factory.SelfAttribute("part.transcript")
    number = factory.LazyAttribute(lambda made: made.transcript.segments.count() + 1)
    narrative = factory.Sequence(lambda n: f"The backup was moved to host {n}.")


class FactFactory(DjangoModelFactory):
    class Meta:
        model = Fact

    segment = factory.SubFactory(SegmentFactory)
    number = factory.LazyAttribute(lambda made: made.segment.facts.count() + 1)
    text = factory.Sequence(lambda n: f"The backup of host {n} runs at 03:00 and takes an hour")
    source = factory.LazyAttribute(lambda made: f"{made.segment.transcript.source_name}-segment-{made.segment.number}")
    category = "operations"


class GateDecisionFactory(DjangoModelFactory):
    class Meta:
        model = GateDecision

    channel = "observer"
    taxonomy = "knowledge"
    verdict = "discard"
    words = "shorter than 12 characters"
    text = factory.Sequence(lambda n: f"short {n}")


class MemoryFileFactory(DjangoModelFactory):
    """The global memory file of this host; nothing of it is on disk."""

    class Meta:
        model = MemoryFile

    host = "test-host"
    repository = "/nowhere/memory"
    path = "MEMORY.md"


class ProposalFactory(DjangoModelFactory):
    """An addition that waits for the rules."""

    class Meta:
        model = Proposal

    key = factory.Sequence(lambda n: f"proposal-{n}")
    file = factory.SubFactory(MemoryFileFactory)
    kind = ProposalKind.ADD
    section = "operations"
    text = factory.Sequence(lambda n: f"The restic prune of repository {n} holds its lock until 06:10.")
    proposed_text = factory.SelfAttribute("text")


class ProposalEvidenceFactory(DjangoModelFactory):
    class Meta:
        model = ProposalEvidence

    proposal = factory.SubFactory(ProposalFactory)
    memory = factory.SubFactory(MemoryFactory)
    memory_uuid = factory.SelfAttribute("memory.uuid")
    text = factory.SelfAttribute("memory.observation")
    trust = factory.SelfAttribute("memory.trust")
