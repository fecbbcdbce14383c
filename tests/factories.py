"""Rows for tests, as small as the test needs them."""

from __future__ import annotations

import factory
from factory.django import DjangoModelFactory

from memories.models import Memory, Project, Source
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
