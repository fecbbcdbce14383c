"""The demo is set up once, however often it is called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memories.committers import Look
from memories.files.authors import authors_of
from memories.files.document import parse
from memories.library.decisions.folder import check, folder_of
from memories.models import Decision, JournalEntry, Memory, MemoryChange, Project
from sessions_app.demo.setup import AGENTS, set_up, shop_folder
from sessions_app.models import Agent, Session, Trigger
from sessions_app.replay.pick import next_stream
from sessions_app.schedule import cron_error
from tests.support.factories import AgentFactory

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def test_it_makes_the_agents_and_asks_for_two_first_runs():
    made = set_up(at=AT)
    assert sorted(made.agents) == sorted(AGENTS) == sorted(Agent.objects.values_list("slug", flat=True))
    first, second = Session.objects.order_by("id")
    assert (first.pk, second.pk) == made.sessions
    for session in (first, second):
        assert (session.agent.slug, session.status) == ("homelab-watch", "queued")
        assert (session.trigger, session.runner, session.requested_by) == (Trigger.MANUAL, "replay", "demo")
    assert first.hold_reason == ""
    assert f"Session {first.pk}" in second.hold_reason


def test_the_second_time_changes_nothing():
    set_up(at=AT)
    before = list(Agent.objects.values())
    again = set_up(at=AT + timedelta(days=1))
    assert (again.agents, again.sessions) == ((), ())
    assert list(Agent.objects.values()) == before
    assert Session.objects.count() == 2


def test_what_an_operator_changed_stays_as_it_is():
    set_up(at=AT)
    Agent.objects.filter(slug="homelab-watch").update(interval_seconds=600, enabled=False)
    Agent.objects.filter(slug="nightly-review").delete()
    assert set_up(at=AT).agents == ("nightly-review",)
    watch = Agent.objects.get(slug="homelab-watch")
    assert (watch.interval_seconds, watch.enabled) == (600, False)


def test_agents_of_the_operator_are_left_alone():
    mine = AgentFactory(slug="mine")
    set_up(at=AT)
    assert Agent.objects.get(slug="mine").updated_at == mine.updated_at


def test_an_outage_climbs_from_the_watch_to_the_repair():
    set_up(at=AT)
    watch = Agent.objects.get(slug="homelab-watch")
    chain = [watch, watch.escalates_to, watch.escalates_to.escalates_to]
    assert [(agent.slug, agent.tier) for agent in chain] == [
        ("homelab-watch", 1),
        ("homelab-investigate", 2),
        ("homelab-mend", 3),
    ]
    assert chain[-1].escalates_to is None


def test_every_agent_plays_a_stream_of_its_own_and_is_valid():
    set_up(at=AT)
    for agent in Agent.objects.all():
        agent.full_clean()
        assert next_stream(agent, 0).parent.name == agent.slug
        assert not agent.replay_stream.startswith("/")
    assert cron_error(Agent.objects.get(slug="nightly-review").cron) == ""


def test_the_watch_comes_a_minute_after_the_first_run_and_the_review_soon():
    set_up(at=AT)
    times = dict(Agent.objects.exclude(next_run_at=None).values_list("slug", "next_run_at"))
    seconds = {"homelab-watch": 60, "nightly-review": 180, "shares-move": 120}
    seconds |= {"shop-research": 80, "shop-engineer": 100, "shop-qa": 130}
    assert times == {slug: AT + timedelta(seconds=number) for slug, number in seconds.items()}


def test_the_project_has_memories_an_approved_one_and_one_that_ends_soon():
    set_up(at=AT)
    project = Project.objects.get(slug="nas-move")
    assert (project.slug, project.used_means) == ("nas-move", "injected")
    pattern, warning, context = Memory.objects.filter(project=project).order_by("pk")
    assert pattern.approved_at == AT
    assert {memory.taxonomy for memory in (pattern, warning, context)} == {"project"}
    assert (pattern.expires_at, warning.expires_at) == (None, AT + timedelta(days=90))
    assert context.expires_at == AT + timedelta(days=3)
    kinds = {change.kind for change in MemoryChange.objects.filter(memory=pattern)}
    assert kinds == {"created", "approved"}


def test_what_an_operator_changed_of_the_project_stays():
    set_up(at=AT)
    Memory.objects.all().delete()
    Project.objects.update(name="Mine")
    set_up(at=AT)
    assert Project.objects.get(slug="nas-move").name == "Mine"
    assert not Memory.objects.exists()


def test_the_shop_has_a_repository_with_a_file_that_a_person_committed_and_keeps_it(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    set_up(at=AT)
    file = shop_folder() / ".claude-mpm" / "memories" / "shop_engineer_agent.md"
    look = Look(Project.objects.get(slug="tea-shop"), None, AT)
    assert authors_of(file, parse(file.read_bytes()), look).last == "git:Ada"
    file.write_text("- changed by a person\n")
    set_up(at=AT)
    assert file.read_text() == "- changed by a person\n"


def test_the_shop_has_decisions_and_the_journal_what_people_did_once(
    settings, tmp_path, django_capture_on_commit_callbacks
):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True):
            set_up(at=AT)
    rows = Decision.objects.order_by("number").values_list("number", "status", "superseded_by")
    assert list(rows) == [(1, "superseded", ["2"]), (2, "accepted", []), (3, "proposed", [])]
    assert check(folder_of(shop_folder())) == []
    assert sorted(JournalEntry.objects.filter(by="Ada").values_list("tool", flat=True)) == ["caddy", "tea-shop"]
