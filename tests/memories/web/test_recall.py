"""`/memories/recall`: the question, the hits with their parts, the trace, the marks; and what was asked so far."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from memories.models import Recalled, RecallMark, Verdict
from tests.memories.people import HTMX, signed_in
from tests.support.factories import MemoryFactory, ProjectFactory, SegmentFactory, SessionFactory

pytestmark = pytest.mark.django_db

PAGE = "/memories/recall"
ASKED = "/memories/recall/asked"


@pytest.fixture
def backup():
    return MemoryFactory(service="nas", category="dependency", observation="The nightly backup needs the NAS mounted")


def ask(client, **question):
    return client.get(f"{PAGE}?{urlencode(question, doseq=True)}")


def text_of(response):
    return " ".join(response.content.decode().split())


def test_without_a_question_it_shows_the_form_and_asks_nothing():
    html = text_of(signed_in("viewer").get(PAGE))
    assert 'name="query"' in html
    assert "Ask as a session would" in html
    assert not Recalled.objects.exists()


def test_a_question_shows_each_hit_with_what_its_score_is_made_of_and_the_trace(backup):
    html = text_of(ask(signed_in("viewer"), query="nightly backup"))
    assert f'href="/memories/{backup.pk}"' in html
    for part in ("Keyword rank", "Keyword score", "Vector rank", "Cosine", "Fused", "Age factor", "Final"):
        assert f"<dt>{part}</dt>" in html
    assert "Left out" in html
    assert "Terms searched" in html


def test_it_says_when_meaning_is_not_searched(backup):
    response = ask(signed_in("viewer"), query="nightly backup")
    found = response.context["found"]
    assert ("Semantic search is off" in text_of(response)) == (found.trace.semantic != "on")


@pytest.mark.parametrize("given", [{}, {"profile": ""}, {"profile": "balanced"}, {"profile": "lean"}])
def test_the_form_shows_the_profile_that_was_used(backup, given):
    response = ask(signed_in("viewer"), query="nightly backup", **given)
    used = given.get("profile") or "balanced"
    assert response.context["found"].trace.profile == used
    checked = re.findall(r'<input type="radio" name="profile" value="(\w+)"[^>]* checked', text_of(response))
    assert checked == [used]


def test_the_filters_narrow_and_stay_in_the_form(backup):
    MemoryFactory(service="caddy", observation="The nightly backup of caddy is small")
    response = ask(signed_in("viewer"), query="nightly backup", service="nas", category="dependency", limit=5)
    assert [shown.hit.memory_id for shown in response.context["hits"]] == [backup.pk]
    html = text_of(response)
    assert 'value="nas"' in html
    assert '<option value="dependency" selected>' in html
    assert '<details class="more-filters" open>' in html


def test_an_operator_sees_every_project_and_can_ask_for_one_alone(backup):
    mine = MemoryFactory(project=ProjectFactory(slug="mine"), observation="The nightly backup of mine")
    MemoryFactory(project=ProjectFactory(slug="other"), observation="The nightly backup of the other")
    client = signed_in("viewer")
    assert len(ask(client, query="nightly backup").context["hits"]) == 3
    found = ask(client, query="nightly backup", project="mine").context["hits"]
    assert {shown.hit.memory_id for shown in found} == {mine.pk, backup.pk}
    found = ask(client, query="nightly backup", project="global").context["hits"]
    assert {shown.hit.memory_id for shown in found} == {backup.pk}


def test_what_is_held_comes_only_when_asked_for():
    held = MemoryFactory(verdict=Verdict.HOLD, observation="The nightly backup is held")
    client = signed_in("viewer")
    assert ask(client, query="nightly backup").context["hits"] == []
    shown = ask(client, query="nightly backup", include_hold="on")
    assert [one.hit.memory_id for one in shown.context["hits"]] == [held.pk]
    assert "held for review" in text_of(shown)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"service": "two words"}, "service is &#x27;two words&#x27;"),
        ({"project": "nowhere"}, "There is no project &#x27;nowhere&#x27;"),
        ({"limit": "900"}, "less than or equal to 100"),
        ({"as_of": "yesterday"}, "Enter a valid date"),
        ({"category": "weather"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_and_the_question_stays(question, said, backup):
    response = ask(signed_in("viewer"), query="nightly backup", **question)
    assert response.status_code == 422
    assert said in text_of(response)
    assert 'value="nightly backup"' in text_of(response)


@pytest.mark.parametrize("query", ["", "  ", '"', "NOT (", "*", "🙂", "a" * 10_000, "' OR 1=1 --", "%", "<b>x</b>"])
def test_any_words_can_be_asked_for(query, backup):
    response = ask(signed_in("viewer"), query=query)
    assert response.status_code == 200
    assert "<b>x</b>" not in response.content.decode()


# -- marks -------------------------------------------------------------------------------------------------------


def mark(client, memory, vote, **headers):
    address = f"{PAGE}/mark?{urlencode({'query': 'nightly backup', 'service': 'nas'})}"
    return client.post(address, {"memory": memory.pk, "vote": vote}, headers=headers)


def test_an_operator_marks_a_hit_and_is_brought_back_to_it(backup):
    client = signed_in("operator")
    response = mark(client, backup, "right")
    assert response.status_code == 302
    assert response.headers["Location"] == f"{PAGE}?query=nightly+backup&service=nas#hit-{backup.pk}"
    row = RecallMark.objects.get()
    assert (row.query, row.vote, row.by.get_username(), row.filters["services"]) == (
        "nightly backup",
        "right",
        "one-operator",
        ["nas"],
    )
    html = text_of(ask(client, query="nightly backup"))
    assert f'id="mark-{backup.pk}-right" class="button-small is-right" aria-pressed="true"' in html
    mark(client, backup, "")
    assert not RecallMark.objects.exists()


def test_by_htmx_the_buttons_come_back_as_they_are_now(backup):
    response = mark(signed_in("operator"), backup, "wrong", **HTMX)
    assert response.status_code == 200
    html = text_of(response)
    assert html.startswith("<form")
    assert "is-wrong" in html
    assert "service=nas" in html


def test_a_viewer_only_looks(backup):
    client = signed_in("viewer")
    assert mark(client, backup, "right").status_code == 403
    assert not RecallMark.objects.exists()
    RecallMark.objects.create(query="nightly backup", query_key="x", memory=backup, vote="right")
    html = text_of(ask(client, query="nightly backup"))
    assert "recall/mark" not in html


@pytest.mark.parametrize("fields", [{}, {"memory": "x", "vote": "right"}, {"memory": "1", "vote": "maybe"}])
def test_a_mark_that_says_nothing_is_refused(fields, backup):
    client = signed_in("operator")
    assert client.post(f"{PAGE}/mark?query=x", fields).status_code == 400
    assert client.post(f"{PAGE}/mark", {"memory": backup.pk, "vote": "right"}).status_code == 400
    assert not RecallMark.objects.exists()


def test_a_mark_on_a_memory_that_is_gone_is_said(backup):
    client = signed_in("operator")
    pk, _ = backup.pk, backup.delete()
    backup.pk = pk
    assert mark(client, backup, "right", **HTMX).status_code == 409
    assert mark(client, backup, "right").status_code == 302
    assert "There is no memory" in text_of(client.get(PAGE))


# -- what was asked ----------------------------------------------------------------------------------------------


def test_what_was_asked_shows_who_where_and_what_came_back(backup):
    session = SessionFactory()
    Recalled.objects.create(
        query="is the NAS slow?",
        hits=[[backup.pk, 0.9], [999, 0.5]],
        surface="mcp",
        actor="agent:watcher",
        session=session,
    )
    html = text_of(signed_in("viewer").get(ASKED))
    for part in ("is the NAS slow?", "agent:watcher", f'href="/sessions/{session.pk}"', backup.observation):
        assert part in html
    assert "memory 999, deleted since" in html


def test_it_is_narrowed_by_surface_and_session(backup):
    session = SessionFactory()
    Recalled.objects.create(query="by a session", surface="mcp", session=session)
    Recalled.objects.create(query="by a person", surface="page")
    client = signed_in("viewer")
    for query in ("surface=mcp", f"session={session.pk}"):
        html = text_of(client.get(f"{ASKED}?{query}"))
        assert "by a session" in html
        assert "by a person" not in html
    assert client.get(f"{ASKED}?surface=moon").status_code == 422


def test_its_pages_hold_every_question_once_and_cost_the_same(backup, django_assert_max_num_queries):
    now = timezone.now()
    for number in range(120):
        at = now - timedelta(minutes=number // 7)
        Recalled.objects.create(query=f"question {number:03}", surface="page", at=at, hits=[[backup.pk, 1.0]])
    client, seen, address = signed_in("viewer"), [], ASKED
    for _ in range(3):
        with django_assert_max_num_queries(20):  # without a cache each page asks for the workers itself
            response = client.get(address)
        page = response.context["page"]
        seen += [asked.row.query for asked in page.rows]
        address = f"{ASKED}?before={page.older}"
    assert page.older == 0
    assert sorted(seen) == [f"question {number:03}" for number in range(120)]


def test_before_anybody_asked_it_says_how_to():
    assert "No queries yet" in text_of(signed_in("viewer").get(ASKED))


# -- the box on every page ---------------------------------------------------------------------------------------


def test_every_page_has_one_field_that_leads_here_and_one_page_is_current(backup):
    client = signed_in("viewer")
    for page in ("/", "/memories", "/admin/memories/memory/", PAGE, ASKED):
        html = text_of(client.get(page))
        assert html.count('id="jump-link" href="/jump"') == 1, page
    assert f'href="{PAGE}?query=nightly+backup"' in text_of(client.get("/jump", {"q": "Nightly backup"}))
    for page, label in (
        (PAGE, "Recall"),
        (ASKED, "Recall"),
        ("/memories", "Memories"),
        (f"/memories/{backup.pk}", "Memories"),
    ):
        html = text_of(client.get(page))
        assert html.count('aria-current="page"') == 1, page
        assert f'aria-current="page">{label}</a>' in html


def test_a_stranger_and_a_signed_out_browser_see_nothing(client, stranger):
    assert Client().get(f"{PAGE}?query=x").status_code == 302
    client.force_login(stranger)
    assert client.get(f"{PAGE}?query=x").status_code == 403
    assert client.get(ASKED).status_code == 403


def test_a_question_on_the_page_is_kept_with_who_asked_and_shown_among_what_was_asked(backup):
    client = signed_in("viewer")
    ask(client, query="nightly backup")
    row = Recalled.objects.get()
    assert (row.surface, row.actor, [pk for pk, _ in row.hits]) == ("page", "one-viewer", [backup.pk])
    html = text_of(client.get(ASKED))
    assert "one-viewer" in html
    assert backup.observation in html


def test_narratives_stand_below_the_hits_when_asked_for(backup):
    row = SegmentFactory(narrative="Ann mounted <b>the NAS</b> for the nightly backup.")
    client = signed_in("viewer")
    assert "Ann mounted" not in text_of(ask(client, query="nightly backup"))
    html = text_of(ask(client, query="nightly backup", narratives="on"))
    assert "Ann mounted &lt;b&gt;the NAS&lt;/b&gt; for the nightly backup." in html
    assert f'href="/learning-log/{row.transcript_id}#segment-1"' in html
    assert "--profile balanced --include narratives" in html
    assert "No narrative has these words." in text_of(ask(client, query="zebra", narratives="on"))


def test_who_may_see_no_transcript_is_offered_no_narratives(backup):
    SegmentFactory(narrative="Ann mounted the NAS for the nightly backup.")
    user = get_user_model().objects.create_user("nobody", is_staff=True)
    client = Client()
    client.force_login(user)
    user.user_permissions.add(Permission.objects.get(codename="view_memory"))
    response = ask(client, query="nightly backup", narratives="on")
    html = text_of(response)
    assert len(response.context["hits"]) == 1
    assert "Ann mounted" not in html
    assert "narratives of observed" not in html
