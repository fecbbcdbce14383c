"""What a person chooses for the list of memories: columns, rows of a page, saved views, exports."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.lib.list_view import export
from claudeops.lib.preferences.models import ListChoice, SavedView
from memories.lifecycle import verbs
from memories.models import Memory
from tests.memories.people import signed_in
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db

LIST, COLUMNS, VIEWS = "/memories", "/lists/memories/columns", "/lists/memories/views"


@pytest.fixture
def viewer(db):
    return signed_in("viewer")


def html_of(client, address=LIST) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()


def heads(html: str) -> list[str]:
    return re.findall(r'class="head-(\w+)', html)


def exported(client, query: str) -> str:
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode()


# -- columns and size ----------------------------------------------------------------------------------------------


def test_chosen_columns_are_kept_by_person_and_the_text_cannot_be_hidden(viewer):
    MemoryFactory(observation="Takes 60 s")
    response = viewer.post(COLUMNS, {"column": ["tier", "category"], "size": "25", "query": "category=timing"})
    assert response["Location"] == "/memories?category=timing"
    html = html_of(viewer)
    assert heads(html) == ["status", "text", "category", "tier"]
    assert "Takes 60 s" in html
    assert "cell-service" not in html
    assert 'value="25" selected' in html
    assert "service" in heads(html_of(signed_in("operator")))


def test_the_usual_columns_come_back(viewer):
    MemoryFactory()
    usual = heads(html_of(viewer))
    viewer.post(COLUMNS, {"column": ["tier"], "size": "25"})
    viewer.post(COLUMNS, {"usual": "1", "size": "25"})
    assert heads(html_of(viewer)) == usual
    assert ListChoice.objects.get().size == 50


@pytest.mark.parametrize("given", [{"size": "7"}, {"size": "x" * 99}, {"column": ["no-such", "a,b"], "size": "50"}])
def test_a_choice_that_is_none_of_the_offered_is_left_out(viewer, given):
    assert viewer.post(COLUMNS, given).status_code == 302
    assert ListChoice.objects.get().size == 50
    assert ListChoice.objects.get().names == ["status", "text"]


def test_the_address_says_the_size_where_it_is_set(viewer):
    MemoryFactory.create_batch(30)
    html = html_of(viewer, f"{LIST}?size=25")
    assert html.count("data-row=") == 25
    assert "size=25&amp;after=" in html
    assert html_of(viewer, f"{LIST}?size=7").count("data-row=") == 30


def test_who_may_not_see_the_list_can_choose_nothing_and_an_unknown_list_is_none(client, django_user_model, viewer):
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    assert client.post(COLUMNS, {"size": "25"}).status_code == 403
    assert client.post(VIEWS, {"name": "x", "query": "status=held"}).status_code == 403
    assert viewer.post("/lists/nothing/columns", {}).status_code == 404
    assert viewer.get(COLUMNS).status_code == 405
    assert not ListChoice.objects.exists()


# -- saved views ---------------------------------------------------------------------------------------------------


def test_the_filters_that_are_set_are_saved_under_a_name_and_stand_beside_the_built_in_views(viewer):
    assert 'id="save-view"' not in html_of(viewer)
    assert 'id="save-view"' in html_of(viewer, f"{LIST}?service=caddy")
    assert 'id="save-view"' not in html_of(viewer, f"{LIST}?status=held")
    response = viewer.post(VIEWS, {"name": " The <b>proxy</b> ", "query": "service=caddy&status="})
    assert response["Location"] == "/memories?service=caddy"
    html = html_of(viewer, f"{LIST}?service=caddy")
    assert 'href="/memories?service=caddy" aria-current="true">The &lt;b&gt;proxy&lt;/b&gt;</a>' in html
    assert 'id="own-view"' in html
    assert "proxy" not in html_of(signed_in("operator"))


def test_a_view_is_renamed_and_removed_by_its_owner_alone(viewer):
    viewer.post(VIEWS, {"name": "Mine", "query": "service=caddy"})
    view = SavedView.objects.get()
    other = signed_in("operator")
    other.post(f"{VIEWS}/{view.pk}", {"name": "Theirs"})
    other.post(f"{VIEWS}/{view.pk}", {"remove": "1"})
    assert SavedView.objects.get().name == "Mine"
    viewer.post(f"{VIEWS}/{view.pk}", {"name": "Proxy", "query": "service=caddy"})
    assert SavedView.objects.get().name == "Proxy"
    viewer.post(f"{VIEWS}/{view.pk}", {"remove": "1", "query": "service=caddy"})
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("name", "query"), [("", "status=held"), ("x" * 61, "status=held"), ("a", "//evil.example/#x"), ("a\u0000", "")]
)
def test_a_view_that_cannot_be_saved_says_why(viewer, name, query):
    response = viewer.post(VIEWS, {"name": name, "query": query}, follow=True)
    assert "The view is not saved." in response.content.decode()
    assert not SavedView.objects.exists()
    assert response.redirect_chain[0][0].startswith("/memories")


def test_two_views_do_not_get_one_name(viewer):
    for name, query in (("One", "service=caddy"), ("Two", "service=nas")):
        viewer.post(VIEWS, {"name": name, "query": query})
    two = SavedView.objects.get(name="Two")
    response = viewer.post(f"{VIEWS}/{two.pk}", {"name": "One"}, follow=True)
    assert "You have a view of this name already." in response.content.decode()
    assert SavedView.objects.filter(name="Two").exists()


# -- told, and the line of the confidence ------------------------------------------------------------------------------


def test_what_no_session_was_told_has_a_view_and_the_list_is_sorted_and_narrowed_by_it(viewer):
    never, often = MemoryFactory(), MemoryFactory(told_count=12)
    once, held = MemoryFactory(told_count=1), MemoryFactory(verdict="hold")
    html = html_of(viewer, f"{LIST}?status=active&told=0")
    assert re.findall(r'data-row="(\d+)"', html) == [str(never.pk)]
    assert 'aria-current="true">Never told <b>1</b>' in html
    assert re.findall(r'data-row="(\d+)"', html_of(viewer, f"{LIST}?told=%3E5")) == [str(often.pk)]
    shown = re.findall(r'data-row="(\d+)"', html_of(viewer, f"{LIST}?sort=-told"))
    assert shown == [str(row.pk) for row in (often, once, held, never)]


def test_the_line_of_the_confidence_follows_the_last_thirty_days(viewer):
    memory = MemoryFactory(confidence=0.4, created_at=timezone.now() - timedelta(days=90))
    verbs.set_confidence(memory, 1.0, by="ann", at=timezone.now() - timedelta(days=60))
    verbs.set_confidence(memory, 0.5, by="ann", at=timezone.now() - timedelta(days=15))
    html = html_of(viewer)
    assert 'aria-label="0.50; 30 days ago or at first 1.00"' in html
    assert re.findall(r'spark-line" d="([^"]+)', html) == ["M2 2H28V9H54"]


# -- exports -------------------------------------------------------------------------------------------------------


def test_an_export_holds_what_is_listed_with_the_chosen_columns_in_its_order(viewer):
    session = SessionFactory()
    low = MemoryFactory(service="caddy", confidence=0.4, observation="=cmd|'/c calc'!A0", session=session)
    high = MemoryFactory(service="caddy", confidence=0.9, observation='Ümlaut, "quoted"')
    MemoryFactory(service="nas")
    viewer.post(COLUMNS, {"column": ["confidence", "confirmed"], "size": "25"})
    lines = list(csv.reader(io.StringIO(exported(viewer, "service=caddy&sort=-confidence&format=csv"))))
    assert lines[0] == ["id", "status", "text", "confidence", "confirmed"]
    assert [line[:4] for line in lines[1:]] == [
        [str(high.pk), "active", 'Ümlaut, "quoted"', "0.9"],
        [str(low.pk), "active", "'=cmd|'/c calc'!A0", "0.4"],
    ]
    assert lines[1][4].endswith("Z")
    found = json.loads(exported(viewer, "service=caddy&format=json"))
    assert {row["id"] for row in found} == {low.pk, high.pk}
    assert {row["text"] for row in found} == {low.observation, high.observation}


def test_an_export_needs_the_permission_of_the_list(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    assert client.get(f"{LIST}?format=csv").status_code == 403


def test_an_export_of_filters_that_cannot_be_read_is_empty_and_an_unknown_format_is_the_page(viewer):
    MemoryFactory()
    assert json.loads(exported(viewer, "status=what&format=json")) == []
    assert b"<h1>Memories</h1>" in viewer.get(f"{LIST}?format=xml").content


def test_an_export_ends_at_its_cap_and_its_name_says_so(viewer, monkeypatch):
    monkeypatch.setattr(export, "MOST", 2)
    MemoryFactory.create_batch(3)
    response = viewer.get(f"{LIST}?format=json")
    assert len(json.loads(b"".join(response.streaming_content))) == 2
    assert "-first-" in response["Content-Disposition"]


def test_the_queries_of_an_export_do_not_depend_on_its_rows(viewer):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            exported(viewer, "format=csv")
        return len(captured)

    MemoryFactory.create_batch(2, session=SessionFactory())
    few = queries()
    MemoryFactory.create_batch(10, session=SessionFactory())
    assert queries() == few
    assert Memory.objects.count() == 12
