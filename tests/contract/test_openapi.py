"""The API answers as its OpenAPI document says: generated requests, good and bad, to every route.

schemathesis sends them to the WSGI application in this process, with a token, on the test's database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.db import connections
from schemathesis.engine import events, from_schema

from claudeops.wsgi import application
from memories.access import add_token
from memories.models import Verdict
from sessions_app.models import Session, Status
from tests.support.factories import (
    AgentFactory,
    EventFactory,
    FactFactory,
    MemoryFactory,
    PartFactory,
    ProjectFactory,
    ProposalFactory,
    SegmentFactory,
    SessionFactory,
    StageFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "20"))
"""Generated requests for each route, beside those at the limits of each field. 20 take about half a minute."""

# Left out: whether valid data are accepted, since a category belongs to a taxonomy, and ids or a filter exclude each
# other. A refusal of these is stated in the document, and has tests of its own. tests/claudeops/test_api_isolation.py
# tries every route without a token.
CONFIG = f"""
[generation]
max-examples = {EXAMPLES}
deterministic = true
[phases.stateful]
enabled = false
[checks]
positive_data_acceptance.enabled = false
ignored_auth.enabled = false
"""


@pytest.fixture
def schema(settings: Any) -> Iterator[Any]:
    """Load the document as a caller does, with rows of every kind behind it."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.CLAUDEOPS_ALERT_AGENT = "watch"
    project = ProjectFactory(slug="homelab")
    agent = AgentFactory(slug="watch", runner="replay", replay_stream="homelab-watch")
    for status in (Status.COMPLETED, Status.QUEUED):
        EventFactory(session=SessionFactory(agent=agent, status=status))
    for verdict in Verdict.values:
        MemoryFactory.create_batch(3, project=project, verdict=verdict, session=Session.objects.first())
        MemoryFactory.create_batch(3, project=project, verdict=verdict, taxonomy="project", category="warning")
    part = PartFactory(transcript__project=project)
    StageFactory(part=part)
    FactFactory(segment=SegmentFactory(part=part), memory=MemoryFactory())
    first = ProposalFactory(trust="session")
    ProposalFactory(file=first.file, state="rejected", kind="remove", target="An entry of the file", text="")
    _, secret = add_token("contract", ["admin"], by="operator", max_tier=3)
    token = {"Authorization": f"Bearer {secret}"}
    config = schemathesis.Config.from_str(CONFIG)
    found = schemathesis.openapi.from_wsgi("/api/openapi.json", application, config=config, headers=token)
    found.config.update(headers=token)
    yield found
    connections.close_all()


def test_each_answer_is_stated_in_the_document(schema: Any) -> None:
    problems, asked = set(), 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            problems.add(f"{getattr(event, 'label', '')}: {getattr(event, 'value', None) or event}")
        if not isinstance(event, events.ScenarioFinished):
            continue
        asked += len(event.recorder.cases)
        for checks in event.recorder.checks.values():
            for check in checks:
                if check.failure_info is not None:
                    problems.add(f"{event.recorder.label}: {check.name}: {check.failure_info.failure}")
    assert asked > 10 * EXAMPLES
    assert not problems, "\n\n".join(sorted(problems))
