"""Jump: what a few letters find, for whom, and how much is read."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from claudeops.features import jump
from claudeops.lib.preferences.chosen import save_view
from sessions_app.models import Session
from tests.support.factories import AgentFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(django_user_model):
    return django_user_model.objects.create_user("person", is_staff=True)


def allow(person, *codenames: str):
    person.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
    return type(person).objects.get(pk=person.pk)  # without the permissions that were looked up before


def test_it_finds_what_the_account_may_see(client, admin_client, django_user_model, django_assert_max_num_queries):
    session = SessionFactory(agent=AgentFactory(slug="restic-repair"), summary="The <b>repository</b> is locked")
    memory = MemoryFactory(service="restic", observation="On Tuesdays the prune holds the RESTIC lock")
    with django_assert_max_num_queries(25):
        html = admin_client.get("/jump", {"q": "restic"}).content.decode()
    for address in (
        'href="/agents/restic-repair"',
        'href="/memories?service=restic"',
        f'href="/sessions/{session.pk}"',
        f'href="/memories/{memory.pk}"',
        'href="/memories/recall?query=restic"',
    ):
        assert address in html
    assert "&lt;b&gt;repository" in html
    person = django_user_model.objects.create_user("only-memories", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_memory"))
    assert {heading for heading, _ in jump.find(person, "restic")} == {"Services", "Memories", "Do"}
    assert [hit.url for _, hits in jump.find(person, "") for hit in hits] == [
        "/", "/memories", "/memories/changes", "/memories/timed", "/search", "/inbox", "/memories/recall",
        "/preferences", "/admin/", "/api/docs", "/jump/theme/dark", "/jump/theme/light",
    ]  # fmt: skip
    boss = django_user_model.objects.get(username="admin")
    for text in (str(session.pk), f"#{session.pk}", f"session {session.pk}"):
        assert dict(jump.find(boss, text))["Sessions"][0].url == f"/sessions/{session.pk}"
    for odd in ("9" * 100, "\0", "²", "%", "x" * 10_000):
        assert admin_client.get("/jump", {"q": odd}).status_code == 200, odd


def test_each_word_has_to_stand_somewhere_and_is_marked_where_it_does(admin_client):
    memory = MemoryFactory(observation="The nightly <i>prune</i> holds the lock of restic")
    html = admin_client.get("/jump", {"q": "RESTIC prune"}).content.decode()
    assert f'href="/memories/{memory.pk}"' in html
    assert "&lt;i&gt;<b>prune</b>&lt;/i&gt;" in html
    assert "<b>restic</b>" in html
    assert f'href="/memories/{memory.pk}"' not in admin_client.get("/jump", {"q": "restic tape"}).content.decode()


def test_the_views_of_a_list_are_found_by_their_names_and_only_by_who_sees_the_list(admin_user, django_user_model):
    found = dict(jump.find(admin_user, "fades"))["Go to"]
    assert [(hit.text, hit.url) for hit in found] == [("Memories: Fades next", "/memories?fades=%3C14d&sort=fades")]
    assert [hit.text for hit in dict(jump.find(admin_user, "memories"))["Go to"]] == ["Memories", "Timed memories"]
    assert "Go to" not in dict(jump.find(django_user_model.objects.create_user("guest"), "fades"))


def test_the_views_whose_bounds_depend_on_the_time_or_the_person_and_saved_ones_are_found(admin_user, person):
    save_view(admin_user, "sessions", "Backups at night", "agent=restic")
    for text, name, address in (
        ("failed last", "Sessions: Failed last night", "/sessions?status=went_wrong&ended="),
        ("running", "Sessions: Running", "/sessions?status="),
        ("mine", "Sessions: Mine", "/sessions?by=admin"),
        ("backups at night", "Sessions: Backups at night", "/sessions?agent=restic"),
    ):
        hit = dict(jump.find(admin_user, text))["Go to"][0]
        assert (hit.text, hit.url.startswith(address)) == (name, True)
    other = allow(person, "view_session")
    assert "Go to" not in dict(jump.find(other, "backups at night"))


def test_the_first_letter_asks_for_actions_or_sessions_alone(admin_user):
    AgentFactory(slug="restic-repair")
    session = SessionFactory(summary="restic is locked")
    assert [heading for heading, _ in jump.find(admin_user, "> restic")] == ["Do"]
    assert [heading for heading, _ in jump.find(admin_user, "#restic")] == ["Sessions"]
    assert [hit.url for _, hits in jump.find(admin_user, f"# {session.pk}") for hit in hits] == [
        f"/sessions/{session.pk}"
    ]


def test_for_htmx_it_answers_with_options_and_says_which_text_they_are_for(admin_client):
    AgentFactory(slug="restic-repair")
    html = admin_client.get("/jump", {"q": "run restic"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in html
    assert 'data-for="run restic"' in html
    assert 'hx-post="/jump/run/restic-repair"' in html
    assert 'data-confirm="Press Enter again to run restic-repair"' in html


def test_an_agent_is_run_by_who_may_and_the_answer_leads_to_its_session(client, person):
    AgentFactory(slug="restic-repair")
    client.force_login(allow(person, "view_session", "view_agent"))
    assert [hit for _, hits in jump.find(person, "> run restic") for hit in hits] == []
    assert client.post("/jump/run/restic-repair").status_code == 403
    assert not Session.objects.exists()
    client.force_login(allow(person, "run_session"))
    assert client.get("/jump/run/restic-repair").status_code == 405
    html = client.post("/jump/run/restic-repair", headers={"HX-Request": "true"}).content.decode()
    made = Session.objects.get()
    assert (made.agent.slug, made.trigger, made.requested_by) == ("restic-repair", "manual", "person")
    assert f'<a href="/sessions/{made.pk}">Session {made.pk}</a> of restic-repair is' in html
    assert client.post("/jump/run/restic-repair").headers["Location"] == f"/sessions/{made.pk + 1}"
    html = client.post("/jump/run/nobody", headers={"HX-Request": "true"}).content.decode()
    assert "toast-error" in html
    assert "nobody is not run: There is no agent" in html


def test_the_theme_is_stored_for_the_person_and_told_to_the_page(client, person):
    client.force_login(person)
    answer = client.post("/jump/theme/dark", headers={"HX-Request": "true"})
    assert answer.headers["HX-Trigger"] == '{"theme": "dark"}'
    assert "The theme is dark." in answer.content.decode()
    assert 'data-theme="dark"' in client.get("/preferences").content.decode()
    hits = [hit.url for _, found in jump.find(type(person).objects.get(pk=person.pk), "theme") for hit in found]
    assert hits == ["/jump/theme/light", "/jump/theme/system"]
    assert client.post("/jump/theme/system", headers={"HX-Request": "true"}).headers["HX-Trigger"] == '{"theme": ""}'
    assert client.post("/jump/theme/pink").status_code == 404


def test_what_is_read_does_not_grow_with_the_rows(admin_user, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(jump, "RECENT_MEMORIES", 3)
    monkeypatch.setattr(jump, "RECENT_SESSIONS", 3)
    for n in range(8):
        MemoryFactory(observation=f"restic {n}")
        SessionFactory(summary=f"restic {n}")
        AgentFactory(slug=f"restic-{n}")
    admin_user.has_perm("sessions_app.view_session"), jump.preference_of(admin_user)
    with django_assert_num_queries(9):  # two of them for the views: those saved, and what sessions cost of late
        found = dict(jump.find(admin_user, "restic"))
    assert [len(found[kind]) for kind in ("Agents", "Sessions", "Memories")] == [jump.EACH, 3, 3]
