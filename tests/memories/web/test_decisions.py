"""The figures of gate and triage: over time, by agent and by rule, and what people changed afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.lib import periods
from memories.models import GateDecision, Label, ProposalDecision, ProposalVerdict, Tier
from memories.queries import decision_figures
from tests.sessions_app.people import person
from tests.support.factories import ProposalFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


def decided(
    verdict: str, *, label: str = "", agent: str | None = "watch", rule: str = "command", days: int = 1
) -> None:
    GateDecision.objects.create(
        at=timezone.now() - timedelta(days=days),
        channel="text",
        taxonomy="ops",
        verdict=verdict,
        reasons=[rule] if rule else [],
        agent=agent,
        label=label,
    )


def read() -> decision_figures.Figures:
    edges = periods.edges_of(periods.RANGES["30d"], timezone.now(), timezone.get_current_timezone())
    return decision_figures.read(edges)


def test_the_gates_decisions_are_counted_by_day_agent_and_rule_with_what_people_changed():
    decided("allow", label=Label.EDITED, rule="")
    decided("hold", label=Label.RELEASED)
    decided("hold", label=Label.EDITED)
    decided("discard", agent=None, days=3)
    decided("discard", days=31)
    found = read()
    assert found.gate[-2] == {"allow": 1, "hold": 2}
    assert found.gate[-4] == {"discard": 1}
    watch, nobody = found.gate_agents
    assert (watch.name, watch.verdicts, watch.looked, watch.changed) == ("watch", {"allow": 1, "hold": 2}, 3, 2)
    assert (nobody.name, nobody.looked) == ("no agent", 0)
    assert [row.name for row in found.gate_rules] == ["command", "no rule"]


def test_the_triages_decisions_are_counted_by_tier_and_rule_with_what_was_taken_back():
    proposal = ProposalFactory()
    for tier, verdict, rule, undone in (
        (Tier.RULES, ProposalVerdict.REJECT, "too_short", None),
        (Tier.RULES, ProposalVerdict.PROMOTE, "exact", timezone.now()),
        (Tier.PERSON, ProposalVerdict.PROMOTE, "", None),
        (Tier.PERSON, ProposalVerdict.EDIT, "", None),
    ):
        ProposalDecision.objects.create(
            proposal=proposal, tier=tier, verdict=verdict, rule=rule, by="x", undone_at=undone
        )
    found = read()
    assert found.triage[-1] == {"reject": 1, "promote": 2}, "an edit decides nothing"
    assert [(row.name, row.total, row.changed) for row in found.triage_tiers] == [("rules", 2, 1), ("person", 1, 0)]
    assert [(row.name, row.changed) for row in found.triage_rules] == [("exact", 1), ("too_short", 0)]


def test_the_page_shows_them_and_a_hostile_name_is_text(viewer):
    decided("hold", agent="<script>alert(1)</script>", label=Label.RELEASED)
    html = viewer.get("/diagnostics/decisions?range=7d").content.decode()
    assert "<script>alert(1)" not in html
    assert "1 of 1" in html


@pytest.mark.parametrize("query", ["", "?range=24h", "?range=90d", "?range=nonsense"])
def test_an_empty_house_has_an_empty_page(viewer, query):
    response = viewer.get(f"/diagnostics/decisions{query}")
    assert response.status_code == 200
    assert "No decision in" in response.content.decode()


def test_the_queries_do_not_grow(viewer):
    def queries() -> int:
        for number in range(10):
            decided("hold", agent=f"agent-{GateDecision.objects.count()}-{number}")
        with CaptureQueriesContext(connection) as captured:
            viewer.get("/diagnostics/decisions")
        return len(captured)

    assert queries() == queries()


def test_without_the_permission_it_is_not_shown(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))
    assert client.get("/diagnostics/decisions").status_code == 403
