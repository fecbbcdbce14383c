"""`/trace`: who may see it, what it shows, and that what agents wrote stays text."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from memories.models import Memory
from tests.claudeops.trace.test_ends import prompted, said
from tests.support.factories import GateDecisionFactory, MemoryFactory

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert(1)</script> {{ 7 }} restarts jellyfin\'s "disk"'


@pytest.fixture
def page(client, operator):
    client.force_login(operator)

    def get(**query):
        response = client.get("/trace", query)
        return response.status_code, " ".join(response.content.decode().split())

    return get


def test_it_asks_first(page):
    status, html = page()
    assert status == 200
    assert "Ask for what a session should have known" in html


def test_it_shows_the_sentence_the_way_and_the_ranking(page):
    for number in range(30):
        MemoryFactory(observation=f"Jellyfin fact {number} about something else entirely", confidence=0.9)
    memory = said()
    session = prompted(budget=400)
    status, html = page(q=str(memory.pk), session=session.pk)
    assert status == 200
    assert f"It knew. Memory {memory.pk} was found, but came 31st" in html
    assert html.count('<li class="step-') == 8
    assert "ended here" in html
    assert "400 tokens end here" in html
    assert f'action="/memories/{memory.pk}/confirm"' in html
    assert f'<option value="{session.pk}" selected>' in html


def test_the_button_confirms_the_memory_as_it_was_shown(page, client):
    memory = said()
    _, html = page(q=str(memory.pk))
    seen = html.split('name="seen" value="')[1].split('"')[0]
    client.post(f"/memories/{memory.pk}/confirm", {"seen": seen})
    assert Memory.objects.get(pk=memory.pk).confidence == pytest.approx(0.8)


def test_what_agents_wrote_stays_text(page):
    MemoryFactory(observation=HOSTILE)
    GateDecisionFactory(text=f"{HOSTILE} twice over", words=HOSTILE, at=timezone.now())
    for asked in (HOSTILE, f"{HOSTILE} twice over", "<b>bold</b>"):
        status, html = page(q=asked)
        assert status == 200
        assert "<script>alert" not in html
        assert "<b>bold" not in html


def test_a_session_that_is_not_there_is_said(page):
    status, html = page(q="anything", session=99)
    assert status == 422
    assert "There is no session 99." in html


@pytest.mark.parametrize("query", [{"q": "x", "session": "no"}, {"q": "x" * 200_000}, {"q": "\x00"}])
def test_what_cannot_be_read_is_refused(page, query):
    assert page(**query)[0] == 422


@pytest.mark.parametrize(
    "asked", ["%", "_", "'; DROP TABLE memories; --", "999999999999999999", "🐘" * 50, "a " * 4000]
)
def test_odd_questions_are_answered(page, asked):
    assert page(q=asked)[0] == 200


def test_who_may_only_look_is_offered_no_change(client, django_user_model):
    memory = said()
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    names = ("view_memory", "view_session")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    html = client.get("/trace", {"q": memory.pk}).content.decode()
    assert "Its steps" in html
    assert "/confirm" not in html


def test_without_permission_there_is_no_page(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("junior", is_staff=True))
    assert client.get("/trace").status_code == 403
