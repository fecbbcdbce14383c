"""Jump: what a few letters find, for whom, and how much is read."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from claudeops import jump
from tests.factories import AgentFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db


def test_it_finds_what_the_account_may_see(client, admin_client, django_user_model, django_assert_max_num_queries):
    agent = AgentFactory(slug="restic-repair")
    session = SessionFactory(agent=agent, summary="The <b>repository</b> is locked")
    memory = MemoryFactory(service="restic", observation="On Tuesdays the prune holds the RESTIC lock")
    with django_assert_max_num_queries(12):
        html = admin_client.get("/jump", {"q": "restic"}).content.decode()
    for address in (
        f'href="/admin/sessions_app/agent/{agent.pk}/change/"',
        'href="/memories?service=restic"',
        f'href="/sessions/{session.pk}"',
        f'href="/memories/{memory.pk}"',
        'href="/memories/recall?query=restic"',
    ):
        assert address in html
    assert "&lt;b&gt;repository" in html
    person = django_user_model.objects.create_user("only-memories", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_memory"))
    assert {heading for heading, _ in jump.find(person, "restic")} == {"Services", "Memories"}
    assert [hit.url for _, hits in jump.find(person, "") for hit in hits] == [
        "/", "/memories", "/desk", "/memories/recall", "/admin/", "/preferences",
    ]  # fmt: skip
    boss = django_user_model.objects.get(username="admin")
    for text in (str(session.pk), f"#{session.pk}", f"session {session.pk}"):
        assert dict(jump.find(boss, text))["Sessions"][0].url == f"/sessions/{session.pk}"
    for odd in ("9" * 100, "\0", "²", "%", "x" * 10_000):
        assert admin_client.get("/jump", {"q": odd}).status_code == 200, odd
