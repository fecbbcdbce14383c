"""The pages of projects: what they show, who may do what there, what they cost."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import OuterRef
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.lib.capped import CappedCount
from memories.models import Change, Memory, MemoryChange, Project
from memories.queries.numbers import ends_in_parts
from sessions_app.models import Injected, Status, UsedMemory
from tests.support.factories import AgentFactory, EventFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


def of_project(project, text="A text", days=None, **columns):
    if days is not None:
        columns["expires_at"] = timezone.now() + timedelta(days=days, minutes=5)
    given = {"taxonomy": "project", "category": "warning", "service": None, "observation": text, **columns}
    return MemoryFactory(project=project, **given)


def filled(slug, size):
    """A project with `size` memories, of which each was used, sessions, agents and events."""
    project = ProjectFactory(slug=slug)
    for n in range(size):
        memory = of_project(project, f"{slug} knows {n}", days=n + 1, tags=["x"])
        session = SessionFactory(project=project, ended_at=timezone.now(), agent=AgentFactory(project=project))
        UsedMemory.objects.create(memory_id=memory.pk, session=session, how="named", helped=True)
        EventFactory(session=session)
    return project


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


@pytest.fixture
def viewer(client, db):
    account = User.objects.create_user("viewer", password="x", is_staff=True)
    account.groups.add(Group.objects.get(name="viewer"))
    client.force_login(account)
    return client


# -- the list ----------------------------------------------------------------------------------------------------


def test_the_list_has_each_project_first_the_one_whose_memory_ends_next(signed_in):
    late, soon, none = (ProjectFactory(slug=slug) for slug in ("late", "soon", "none"))
    of_project(late, "Ends late", days=50)
    of_project(late, "Never ends", category="pattern")
    of_project(late, "Gone", days=1, active=False)
    of_project(soon, "Ends soon", days=2)
    SessionFactory(project=soon, status=Status.FAILED, cost_usd=2, ended_at=timezone.now())
    SessionFactory(project=soon, status=Status.COMPLETED, cost_usd=1, ended_at=timezone.now())
    AgentFactory(project=soon)
    html = signed_in.get("/projects").content.decode()
    assert html.index("/projects/soon") < html.index("/projects/late")
    assert html.index("/projects/late") < html.index("/projects/none")
    assert "Ends soon" in html
    assert "Never ends" not in html
    assert "Gone" not in html
    assert "2 runs: 1 completed, 1 failed" in html
    assert "$3.00" in html
    assert "soon: 1 memory ends within 8 weeks, the first in 2 days" in html
    assert f'id="project-{late.pk}-memories">2<' in html
    assert none.slug in html


def test_the_list_costs_as_many_queries_with_20_projects_as_with_10(signed_in):
    numbers = []
    for size in (10, 20):
        for n in range(10):
            filled(f"p-{size}-{n}", 1)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert signed_in.get("/projects").status_code == 200
        numbers.append(len(queries))
    assert numbers[0] == numbers[1] <= 24


def test_without_projects_the_page_says_what_one_is(signed_in):
    html = signed_in.get("/projects").content.decode()
    assert "No projects yet." in html
    assert "manage.py project add" in html


def test_a_new_project_is_made_and_a_wrong_one_is_refused_with_what_was_typed(signed_in):
    given = {"slug": "web", "name": "The web", "path": "/srv/web", "expire_warning": "9", "expire_context": "never"}
    given |= {"memories_in_prompt": "5", "memory_budget": "100", "used_means": "named"}
    response = signed_in.post("/projects", given)
    assert response.headers["Location"] == "/projects/web"
    project = Project.objects.get()
    assert (project.default_expiry, project.memories_in_prompt) == ({"warning": 9, "context": None}, 5)
    wrong = signed_in.post("/projects", {**given, "expire_learning": "soon", "memory_budget": "-1"})
    html = wrong.content.decode()
    assert wrong.status_code == 422
    assert "Project with this Slug already exists." in html
    assert "days, never, or nothing." in html
    assert "greater than or equal to 0" in html
    assert 'value="/srv/web"' in html
    assert Project.objects.count() == 1


def test_settings_are_shown_and_stored_and_wrong_ones_change_nothing(signed_in):
    project = ProjectFactory(slug="web", default_expiry={"warning": 9, "context": None})
    html = signed_in.get("/projects/web/settings").content.decode()
    assert 'value="9"' in html
    assert 'value="never"' in html
    given = {"memories_in_prompt": "5", "memory_budget": "100", "used_means": "injected", "name": "Web"}
    given["memory_path"] = "docs/MEMORY.md"
    assert signed_in.post("/projects/web/settings", {**given, "memory_path": "/etc/x.md"}).status_code == 422
    assert signed_in.post("/projects/web/settings", given).headers["Location"] == "/projects/web"
    project.refresh_from_db()
    assert (project.used_means, project.default_expiry, project.name) == ("injected", {}, "Web")
    assert project.memory_path == "docs/MEMORY.md"
    assert not project.observed  # a box that is not ticked
    signed_in.post("/projects/web/settings", {**given, "observed": "on"})
    project.refresh_from_db()
    assert project.observed
    assert signed_in.post("/projects/web/settings", {**given, "memories_in_prompt": "0"}).status_code == 422
    project.refresh_from_db()
    assert project.memories_in_prompt == 5


# -- one project -------------------------------------------------------------------------------------------------


def test_a_project_shows_its_memories_in_the_order_in_which_they_end(signed_in):
    project = ProjectFactory(slug="web", description="The shop", path="/srv/web")
    of_project(project, "Never", category="pattern")
    of_project(project, "Later", days=40)
    soon = of_project(project, "Soon", days=1, tags=["src/**"])
    of_project(ProjectFactory(), "Another's", days=1)
    MemoryFactory(observation="For all")
    helped, failed = (
        SessionFactory(project=project, status=s, ended_at=timezone.now()) for s in ("completed", "failed")
    )
    UsedMemory.objects.create(memory_id=soon.pk, session=helped, how="named", helped=True)
    UsedMemory.objects.create(memory_id=soon.pk, session=failed, how="named", helped=False)
    html = signed_in.get("/projects/web").content.decode()
    rows = html[html.index('id="memory-rows"') :]
    assert rows.index("Soon") < rows.index("Later") < rows.index("Never")
    assert "Another" not in html
    assert "For all" not in html
    for said in ("The shop", "/srv/web", "src/**", "1 of 2", "What expires next, by week: 1 later, 1 this week."):
        assert said in html, said
    assert "Memories used, by week: 1 helped, 1 session failed." in html


def test_filters_views_and_export_are_about_the_projects_memories_alone(signed_in):
    project = ProjectFactory(slug="web")
    of_project(project, "A warning", days=3)
    of_project(project, "A pattern", category="pattern")
    of_project(ProjectFactory(), "Another one", days=3)
    html = signed_in.get("/projects/web?fades=%3C14d").content.decode()
    assert "A warning" in html
    assert "A pattern" not in html[html.index('id="memory-rows"') :]
    assert signed_in.get("/projects/web?q=category:pattern").headers["Location"] == "/projects/web?category=pattern"
    lines = b"".join(signed_in.get("/projects/web?format=csv").streaming_content).decode().splitlines()
    assert len(lines) == 3
    assert "2 memories of this project" in signed_in.get("/projects/web").content.decode()
    assert signed_in.get("/projects/web?category=nonsense").status_code == 200


def test_a_projects_tabs_show_its_sessions_agents_and_events(signed_in):
    project = ProjectFactory(slug="web")
    agent = AgentFactory(slug="mine", project=project)
    session = SessionFactory(project=project, agent=agent, summary="All is well")
    EventFactory(session=session, message="The disk fills")
    SessionFactory(summary="Elsewhere")
    EventFactory(message="Not of it")
    for tab, said, other in (
        ("sessions", "All is well", "Elsewhere"),
        ("agents", "mine", "agent-"),
        ("events", "The disk fills", "Not of it"),
    ):
        html = signed_in.get(f"/projects/web?tab={tab}").content.decode()
        assert said in html
        assert other not in html[html.index("<main") :].replace("agent-" + str(agent.pk), "")


def test_a_project_costs_as_many_queries_with_20_memories_as_with_10(signed_in):
    numbers = []
    for size in (10, 20):
        filled(f"p{size}", size)
        for tab in ("memories", "sessions", "agents", "events"):
            with CaptureQueriesContext(connection) as queries:
                assert signed_in.get(f"/projects/p{size}?tab={tab}").status_code == 200
            numbers.append(len(queries))
    assert numbers[:4] == numbers[4:]
    assert max(numbers) <= 33, numbers


def test_a_project_that_is_not_there_is_404(signed_in):
    for path in ("/projects/nowhere", "/projects/nowhere/settings"):
        assert signed_in.get(path).status_code == 404


# -- what is done there ------------------------------------------------------------------------------------------


def test_a_memory_is_added_with_tags_relevance_and_an_end_of_its_own(signed_in):
    ProjectFactory(slug="web", default_expiry={"warning": 9})
    given = {"observation": "Port 80 is taken", "category": "warning", "tags": "src/**, port"}
    assert signed_in.post("/projects/web/memories", given).headers["Location"] == "/projects/web"
    memory = Memory.objects.get()
    assert (memory.taxonomy, memory.confidence, memory.tags) == ("project", 1.0, ["src/**", "port"])
    assert timedelta(days=8) < memory.expires_at - timezone.now() < timedelta(days=9, seconds=1)
    given |= {"observation": "Another", "relevance_score": "0.4", "expires_at": "2030-01-01T10:00"}
    signed_in.post("/projects/web/memories", given)
    other = Memory.objects.latest("pk")
    assert (other.relevance_score, other.expires_at.year) == (0.4, 2030)


@pytest.mark.parametrize(
    "wrong",
    [
        {"observation": ""},
        {"category": "timing"},
        {"relevance_score": "7"},
        {"expires_at": "soon"},
        {"tags": "x" * 51},
        {"observation": "y" * 10_001},
    ],
)
def test_a_wrong_memory_is_refused_and_nothing_is_stored(signed_in, wrong):
    ProjectFactory(slug="web")
    given = {"observation": "Port 80 is taken", "category": "warning", **wrong}
    assert signed_in.post("/projects/web/memories", given).status_code == 422
    assert not Memory.objects.exists()


def test_renew_adds_30_days_to_an_end_as_one_change(signed_in):
    memory = of_project(ProjectFactory(slug="web"), days=1)
    end = memory.expires_at
    address = f"/projects/web/memories/{memory.pk}/renew"
    assert (
        signed_in.post(address, {"next": "/projects/web?fades=%3C7d"}).headers["Location"]
        == "/projects/web?fades=%3C7d"
    )
    memory.refresh_from_db()
    assert memory.expires_at == end + timedelta(days=30)
    change = MemoryChange.objects.get(memory=memory)
    assert (change.kind, change.reason, change.actor) == (Change.EDITED, "Renewed.", "operator")
    html = signed_in.post(address, headers={"HX-Request": "true"}).content.decode()
    assert f'id="memory-{memory.pk}"' in html
    assert "expires 30 days later" in html


def test_a_renewal_that_is_sent_twice_adds_30_days_once_and_a_second_press_adds_30_more(signed_in):
    memory = of_project(ProjectFactory(slug="web"), days=1)
    end = memory.expires_at
    address = f"/projects/web/memories/{memory.pk}/renew"
    html = signed_in.get("/projects/web").content.decode()
    assert f'name="end" value="{end.isoformat()}"' in html
    signed_in.post(address, {"end": end.isoformat()})
    again = signed_in.post(address, {"end": end.isoformat()}, headers={"HX-Request": "true"}).content.decode()
    memory.refresh_from_db()
    assert memory.expires_at == end + timedelta(days=30)
    assert MemoryChange.objects.filter(memory=memory).count() == 1
    assert "has nothing to change" in again
    shown = (end + timedelta(days=30)).isoformat()
    assert f'value="{shown}"' in again
    signed_in.post(address, {"end": shown})
    signed_in.post(address, {"end": "soon"})
    memory.refresh_from_db()
    assert memory.expires_at == end + timedelta(days=60)


@pytest.mark.parametrize("elsewhere", ["//evil.example/projects/web", "https://evil.example", "/memories"])
def test_after_a_renewal_nobody_is_led_elsewhere(signed_in, elsewhere):
    memory = of_project(ProjectFactory(slug="web"), days=1)
    response = signed_in.post(f"/projects/web/memories/{memory.pk}/renew", {"next": elsewhere})
    assert response.headers["Location"] == "/projects/web"


def test_rows_approve_deactivate_and_activate_a_memory(signed_in):
    memory = of_project(ProjectFactory(slug="web"), confidence=0.5)
    for verb, expected in (("approve", (True, 1.0)), ("deactivate", (False, 1.0)), ("activate", (True, 1.0))):
        assert signed_in.post(f"/projects/web/memories/{memory.pk}/{verb}").status_code == 302
        memory.refresh_from_db()
        assert (memory.active, memory.confidence) == expected
    assert signed_in.post(f"/projects/web/memories/{memory.pk}/delete").status_code == 404


def test_approve_stands_on_the_rows_that_wait_for_a_person_alone(signed_in):
    project = ProjectFactory(slug="web")
    waits = [
        of_project(project, "Held", verdict="hold"),
        of_project(project, "Unconfirmed", provisional="an instruction", confirmed_at=None),
    ]
    for columns in ({"confidence": 0.5}, {"confidence": 0.3, "source": "learning"}, {"source": "human"}):
        of_project(project, f"Needs none {columns}", **columns)
    of_project(project, "Inactive", active=False, inactive_reason="expired")
    html = signed_in.get("/projects/web").content.decode()
    assert {int(pk) for pk in re.findall(r'id="memory-(\d+)-approve"', html)} == {memory.pk for memory in waits}


def test_a_memory_that_was_told_and_not_used_says_both(signed_in):
    project = ProjectFactory(slug="web")
    memory = of_project(project, "Told", told_count=19)
    Injected.objects.create(session=SessionFactory(project=project, ended_at=timezone.now()), memory_id=memory.pk)
    words = " ".join(re.sub(r"<[^>]+>", " ", signed_in.get("/projects/web").content.decode()).split())
    assert "Used 0 times by 0 sessions, 9 weeks. A use: the session named it." in words
    assert re.search(
        rf'id="memory-{memory.pk}".*?cell-told[^>]*>19<', signed_in.get("/projects/web").content.decode(), re.S
    )
    assert "None of these did." in signed_in.get(f"/memories/{memory.pk}").content.decode()


def test_a_memory_of_another_project_is_404(signed_in):
    ProjectFactory(slug="web")
    memory = of_project(ProjectFactory(slug="other"), days=1)
    assert signed_in.post(f"/projects/web/memories/{memory.pk}/renew").status_code == 404
    signed_in.post("/projects/web/bulk", {"action": "deactivate", "id": [memory.pk]})
    memory.refresh_from_db()
    assert memory.active


def test_approve_all_that_match_is_about_the_filtered_memories_of_the_project(signed_in):
    project, other = ProjectFactory(slug="web"), ProjectFactory(slug="other")
    warned = [of_project(project, f"W{n}", days=n + 1, confidence=0.5) for n in range(3)]
    rest = [of_project(project, "P", category="pattern", confidence=0.5), of_project(other, "O", confidence=0.5)]
    address = "/projects/web/bulk?category=warning"
    asked = signed_in.post(address, {"action": "approve", "all_matching": "1"})
    assert "Approve: 3 memories" in asked.content.decode()
    answer = {"action": "approve", "all_matching": "1", "confirmed": "1", "count": "3"}
    assert signed_in.post(address, answer).headers["Location"] == "/projects/web?category=warning"
    assert {memory.confidence for memory in Memory.objects.filter(pk__in=[one.pk for one in warned])} == {1.0}
    assert {memory.confidence for memory in Memory.objects.filter(pk__in=[one.pk for one in rest])} == {0.5}


def test_selected_memories_are_renewed_by_30_days_in_bulk(signed_in):
    project = ProjectFactory(slug="web")
    one, never = of_project(project, "One", days=1), of_project(project, "Never")
    end = one.expires_at
    signed_in.post("/projects/web/bulk", {"action": "extend", "id": [one.pk, never.pk]})
    one.refresh_from_db()
    never.refresh_from_db()
    assert (one.expires_at, never.expires_at) == (end + timedelta(days=30), None)
    assert signed_in.post("/projects/web/bulk", {"action": "delete", "id": [one.pk]}).status_code == 403


def drawn_of(html: str) -> list[str]:
    return re.findall(r'name="drawn" value="([^"]+)"', html)


def test_a_bulk_renewal_that_is_sent_twice_adds_30_days_once_and_another_page_adds_30_more(signed_in):
    project = ProjectFactory(slug="web")
    one, other = of_project(project, "One", days=1), of_project(project, "Other", days=1)
    end = one.expires_at
    [drawn] = drawn_of(signed_in.get("/projects/web").content.decode())
    given = {"action": "extend", "id": [one.pk], "drawn": drawn}
    signed_in.post("/projects/web/bulk", given)
    again = signed_in.post("/projects/web/bulk", given | {"id": [one.pk, other.pk]}, follow=True).content.decode()
    assert "1 memory renewed by 30 days; 1 memory had nothing to change." in unescape(again)
    for row in (one, other):
        row.refresh_from_db()
    assert (one.expires_at, other.expires_at - end < timedelta(days=31)) == (end + timedelta(days=30), True)
    assert MemoryChange.objects.filter(memory=one).count() == 1
    signed_in.post("/projects/web/bulk", given | {"drawn": drawn_of(again)[0]})
    one.refresh_from_db()
    assert one.expires_at == end + timedelta(days=60)


def test_a_row_that_was_renewed_in_place_is_renewed_again_by_the_selection(signed_in):
    memory = of_project(ProjectFactory(slug="web"), days=1)
    end = memory.expires_at
    [drawn] = drawn_of(signed_in.get("/projects/web").content.decode())
    row = signed_in.post(
        f"/projects/web/memories/{memory.pk}/renew", {"end": end.isoformat()}, headers={"HX-Request": "true"}
    )
    [since] = drawn_of(row.content.decode())
    given = {"action": "extend", "id": [memory.pk], "drawn": [since, drawn]}
    for _ in range(2):
        signed_in.post("/projects/web/bulk", given)
        memory.refresh_from_db()
        assert memory.expires_at == end + timedelta(days=60)


def test_renewing_all_that_match_counts_once_too_and_a_time_that_cannot_be_read_changes_nothing(signed_in):
    memory = of_project(ProjectFactory(slug="web"), days=1)
    end = memory.expires_at
    [drawn] = drawn_of(signed_in.get("/projects/web").content.decode())
    given = {"action": "extend", "all_matching": "1", "drawn": drawn}
    asked = signed_in.post("/projects/web/bulk", given).content.decode()
    assert drawn_of(asked) == [drawn]
    for _ in range(2):
        signed_in.post("/projects/web/bulk", given | {"confirmed": "1", "count": "1"})
    signed_in.post("/projects/web/bulk", {"action": "extend", "id": [memory.pk], "drawn": "soon"})
    memory.refresh_from_db()
    assert memory.expires_at == end + timedelta(days=30)


def test_a_viewer_sees_projects_and_changes_nothing(viewer):
    project = ProjectFactory(slug="web")
    memory = of_project(project, days=1)
    html = viewer.get("/projects/web").content.decode()
    assert "renew" not in html[html.index("<main") :]
    assert viewer.get("/projects").status_code == 200
    for path in (
        "/projects",
        "/projects/web/settings",
        "/projects/web/memories",
        f"/projects/web/memories/{memory.pk}/renew",
        "/projects/web/bulk",
    ):
        assert viewer.post(path, {"slug": "x"}).status_code == 403


def test_a_memorys_page_leads_to_its_project(signed_in):
    memory = of_project(ProjectFactory(slug="web"))
    assert 'href="/projects/web"' in signed_in.get(f"/memories/{memory.pk}").content.decode()


def test_jump_finds_a_project(signed_in):
    ProjectFactory(slug="nas-migration", name="Moves the shares")
    assert "/projects/nas-migration" in signed_in.get("/jump?q=moves").content.decode()


# -- cost ----------------------------------------------------------------------------------------------------------


def test_ends_are_counted_by_part_and_what_is_overdue_counts_now():
    project, now = ProjectFactory(), timezone.now()
    for days in (-1, 0.5, 7.5, 7.6, 100):
        of_project(project, f"Ends {days}", expires_at=now + timedelta(days=days))
    of_project(project, "Persistent", expires_at=None, persistent=True)
    other, unasked = ProjectFactory(), ProjectFactory()
    for one in (other, unasked):
        of_project(one, "Ends later", expires_at=now + timedelta(days=50))
    found = ends_in_parts([project.pk, other.pk], now, timedelta(days=7), 8)
    assert found == {project.pk: {0: 2, 1: 2}, other.pk: {7: 1}}
    assert ends_in_parts([], now, timedelta(days=7), 8) == {}


def test_counts_stop_at_their_cap():
    project = ProjectFactory()
    MemoryFactory.create_batch(5, project=project)
    rows = Project.objects.annotate(n=CappedCount(Memory.objects.filter(project=OuterRef("pk")), 3))
    assert rows.get().n == 4


def test_a_project_is_a_link_where_a_memory_or_a_session_names_it_and_the_admin_leads_to_its_page(
    signed_in, admin_client
):
    project = ProjectFactory(slug="web")
    of_project(project)
    session = SessionFactory(project=project)
    link = 'href="/projects/web"'
    assert link in signed_in.get("/memories").content.decode()
    assert link in signed_in.get(f"/sessions/{session.pk}").content.decode()
    assert link in admin_client.get("/admin/memories/project/").content.decode()


def test_the_admin_refuses_settings_that_cannot_be(admin_client):
    project = ProjectFactory(slug="web")
    address = f"/admin/memories/project/{project.pk}/change/"
    given = {"slug": "web", "name": "", "description": "", "path": "/srv/web", "default_expiry": "{}"}
    given |= {"memories_in_prompt": "101", "memory_budget": "-1", "used_means": "seen"}
    given |= {"files_folder": "../elsewhere", "files_pattern": "agent.md", "files_limits": '{"items": 0}'}
    html = admin_client.post(address, given).content.decode()
    for said in (
        *("less than or equal to 100", "greater than or equal to 0", "Select a valid choice"),
        *("a folder below the repository", "with {agent} once", "items is a whole number from 1 to 200"),
    ):
        assert said in html
    obeyed = given | {"files_folder": ".claude/agents", "files_pattern": "{agent}.md"}
    assert "Programs obey what is in such a folder" in admin_client.post(address, obeyed).content.decode()
    given |= {"memories_in_prompt": "100", "memory_budget": "0", "used_means": "injected"}
    given |= {"files_folder": "docs/agents", "files_pattern": "{agent}.md", "files_limits": '{"items": 20}'}
    assert admin_client.post(address, given).status_code == 302
    project.refresh_from_db()
    assert (project.memories_in_prompt, project.memory_budget, project.path) == (100, 0, "/srv/web")
