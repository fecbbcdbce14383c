"""`/memories`: who sees it, what it shows, how it is narrowed, sorted and paged, what a poll brings, adding."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.lib import capped
from claudeops.lib.list_view import view as list_views
from memories.lifecycle import verbs
from memories.lifecycle.undo import restore
from memories.models import Change, Disagreement, Memory, Verdict
from memories.queries import list as listing
from tests.memories.people import HTMX, signed_in
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db

LIST, ROWS = "/memories", "/memories/rows"


@pytest.fixture
def viewer(db):
    return signed_in("viewer")


@pytest.fixture
def operators(db):
    return signed_in("operator")


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def listed(html: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<tr id="memory-(\d+)" data-row', html)]


def polling(html: str) -> str:
    return re.search(r'id="memories-poll" hidden hx-get="([^"]+)"', html)[1].replace("&amp;", "&")


# -- who ---------------------------------------------------------------------------------------------------------


def test_signed_out_the_page_leads_to_the_sign_in_and_the_fragments_are_refused(client):
    memory = MemoryFactory()
    assert client.get(LIST)["Location"] == "/login?next=/memories"
    assert client.get(f"{LIST}/{memory.pk}").status_code == 302
    for address in (ROWS, f"{LIST}/{memory.pk}/row", f"{LIST}/{memory.pk}"):
        assert client.get(address, headers=HTMX).status_code == 403
    assert client.post(LIST, {}).status_code == 302


def test_staff_without_a_role_sees_nothing(client, django_user_model):
    memory = MemoryFactory()
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    for address in (LIST, ROWS, f"{LIST}/{memory.pk}", f"{LIST}/{memory.pk}/row"):
        assert client.get(address).status_code == 403


def test_a_viewer_sees_no_way_to_change_anything(viewer):
    memory = MemoryFactory()
    for html in (html_of(viewer, LIST), html_of(viewer, f"{LIST}/{memory.pk}")):
        assert memory.observation in html
        for absent in ("data-edit", 'id="add"', 'value="PUT"', 'value="DELETE"', 'value="deactivate"'):
            assert absent not in html
    assert 'value="export"' in html_of(viewer, LIST)


# -- the list ----------------------------------------------------------------------------------------------------


def test_a_row_shows_service_category_text_confidence_status_and_session(viewer):
    session = SessionFactory()
    MemoryFactory(session=session, service="caddy", observation="Reloads <b>slowly</b>", confidence=0.42)
    html = html_of(viewer, LIST)
    for text in ("caddy", "timing", "Reloads &lt;b&gt;slowly&lt;/b&gt;", ">0.42<", f'href="/sessions/{session.pk}"'):
        assert text in html
    assert 'aria-label="active"' in html


def test_inactive_and_held_ones_are_apart_and_say_why(viewer):
    MemoryFactory(active=False, inactive_reason="decayed", service=None)
    MemoryFactory(verdict=Verdict.HOLD, verdict_reason="It reads like a secret.")
    html = html_of(viewer, LIST)
    assert 'class="is-inactive"' in html
    assert "not confirmed for too long" in html
    assert 'class="is-held"' in html
    assert "It reads like a secret." in html
    assert '<span class="quiet">general</span>' in html


def test_without_memories_it_says_what_to_do_next(operators, viewer):
    html = html_of(operators, LIST)
    assert "No memories yet." in html
    assert '<details class="panel add" id="add" open>' in html
    assert "you can add above" not in html_of(viewer, LIST)


def test_when_nothing_matches_it_leads_back_to_all(viewer):
    MemoryFactory()
    assert 'No memory matches. <a href="/memories">' in html_of(viewer, f"{LIST}?service=nothing")


@pytest.mark.parametrize(
    "query",
    [
        "service=general",
        "category=behavior",
        "taxonomy=knowledge",
        "status=held",
        "source=import",
        "confidence_max=0.2",
        "text=one+CORE",
    ],
)
def test_each_filter_of_the_address_narrows_the_list(viewer, query):
    wanted = {"taxonomy": "knowledge"} if "taxonomy" in query else {}
    verdict = Verdict.HOLD if "status" in query else Verdict.ALLOW
    one = MemoryFactory(
        service=None,
        category="behavior",
        source="import",
        confidence=0.1,
        observation="Takes one core",
        verdict=verdict,
        **wanted,
    )
    MemoryFactory(), MemoryFactory(active=False)
    html = html_of(viewer, f"{LIST}?{query}")
    assert listed(html) == [one.pk]
    assert "1 memory that matches" in html


def test_status_takes_the_three_apart(viewer):
    active, inactive = MemoryFactory(), MemoryFactory(active=False)
    held = MemoryFactory(verdict=Verdict.HOLD)
    for status, memory in (("active", active), ("inactive", inactive), ("held", held)):
        assert listed(html_of(viewer, f"{LIST}?status={status}")) == [memory.pk]


def test_a_filter_that_cannot_be_read_is_said_beside_it_and_shows_nothing(viewer):
    MemoryFactory()
    html = html_of(viewer, f"{LIST}?confidence_min=9")
    assert listed(html) == []
    assert "The filter has errors; see above." in html
    assert "less than or equal to 1" in html


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("q=service:caddy+slow+disk&status=active", "?status=active&service=caddy&text=slow+disk"),
        ("q=&service=&status=held&text=old", "?status=held"),
        ('q="service:caddy"', "?text=service%3Acaddy"),
        ("q=", ""),
    ],
)
def test_what_is_typed_into_the_query_bar_becomes_an_address_of_what_is_set(viewer, typed, address):
    response = viewer.get(f"{LIST}?{typed}")
    assert (response.status_code, response["Location"]) == (302, LIST + address)
    assert 'value="&quot;service:caddy&quot;"' in html_of(viewer, f"{LIST}?text=service:caddy")


def test_an_unknown_token_is_named_and_nothing_typed_is_lost(viewer):
    MemoryFactory()
    html = html_of(viewer, f"{LIST}?q=serivce:caddy+slow&status=active")
    assert "There is no filter serivce:. Did you mean service:?" in html
    assert 'value="serivce:caddy slow"' in html
    assert '<option value="active" selected>' in html
    assert listed(html) == []
    assert "hx-get" not in re.search(r'id="memories-poll"[^>]*', html)[0]


def test_the_views_count_what_their_lists_show(viewer):
    soon = MemoryFactory(updated_at=timezone.now() - timedelta(days=60), confidence=0.7)
    held = MemoryFactory(verdict=Verdict.HOLD)
    MemoryFactory(active=False)
    older, newer = MemoryFactory(), MemoryFactory()
    Disagreement.objects.create(
        older=older, newer=newer, kind="contradiction", older_text=older.observation, newer_text=newer.observation
    )
    html = html_of(viewer, LIST)
    found = re.findall(r'<a href="([^"]+)"[^>]*>([A-Z][a-z ]+) <b>([0-9]+)</b></a>', html)
    shown = {label: (listed(html_of(viewer, address.replace("&amp;", "&"))), int(n)) for address, label, n in found}
    assert all(len(rows) == number for rows, number in shown.values())
    assert shown["All"][1] == 5
    assert shown["Fades next"][0] == [soon.pk]
    assert shown["Held"][0] == [held.pk]
    assert set(shown["Contradicted"][0]) == {older.pk, newer.pk}
    assert 'aria-current="true">All' in html


# -- the poll ----------------------------------------------------------------------------------------------------


def test_an_unchanged_list_answers_with_nothing_after_one_look(operators):
    memory = MemoryFactory()
    verbs.deactivate(memory, by="operator")
    address = polling(html_of(operators, LIST))
    with CaptureQueriesContext(connection) as captured:
        assert operators.get(address, headers=HTMX).status_code == 204
    assert sum("memor" in query["sql"] and "FROM" in query["sql"] for query in captured) == 1


def test_a_poll_brings_what_changed_what_is_new_with_its_place_and_what_is_gone(operators):
    now = timezone.now()
    rows = [MemoryFactory(updated_at=now - timedelta(hours=n)) for n in range(4)]
    address = polling(html_of(operators, LIST))
    verbs.deactivate(rows[1], by="other")
    verbs.delete(rows[3], by="other")
    new = MemoryFactory(updated_at=now - timedelta(minutes=90))
    html = html_of(operators, address, **HTMX)
    assert f'<tr id="memory-{rows[1].pk}" data-row="{rows[1].pk}" class="is-inactive" hx-swap-oob="true">' in html
    assert f'hx-swap-oob="afterend:#memory-{rows[1].pk}"' in html
    assert f'<tr id="memory-{rows[3].pk}" hx-swap-oob="delete">' in html
    assert listed(html) == [rows[1].pk, new.pk]
    assert operators.get(polling(html), headers=HTMX).status_code == 204


def test_a_row_that_is_only_pushed_off_the_page_stays_as_it_may_be_selected(operators, monkeypatch):
    monkeypatch.setattr(list_views, "SIZE", 2)
    old = [MemoryFactory(updated_at=timezone.now() - timedelta(hours=n)) for n in range(1, 3)]
    address = polling(html_of(operators, LIST))
    new = MemoryFactory()
    verbs.mark_persistent(new, by="other")
    html = html_of(operators, address, **HTMX)
    assert listed(html) == [new.pk]
    assert "delete" not in re.findall(r'hx-swap-oob="([^"]+)"', html)
    verbs.deactivate(old[1], by="other")
    assert listed(html_of(operators, polling(html), **HTMX)) == [old[1].pk]


def shown_of(html: str) -> str:
    return re.search(r'id="memories-count"[^>]*>\s*([^<]+?)\s*<', html)[1]


def test_it_says_how_many_of_those_that_match_are_on_the_page(operators, monkeypatch):
    for n in range(13):
        MemoryFactory(observation=f"Disk {n} is slow", service="disk")
    MemoryFactory(service="fan")
    assert shown_of(html_of(operators, LIST)) == "14 memories"
    first = html_of(operators, f"{LIST}?service=disk&size=10")
    assert shown_of(first) == "13 memories that match"
    monkeypatch.setattr(list_views, "size_of", lambda given: 10)
    first = html_of(operators, f"{LIST}?service=disk")
    assert shown_of(first) == "10 of 13 memories that match"
    last = re.search(r'href="([^"]+)" rel="next"', first)[1].replace("&amp;", "&")
    assert shown_of(html_of(operators, LIST + last)) == "3 of 13 memories that match"
    poll = polling(first)
    verbs.edit(MemoryFactory(service="disk"), by="other", observation="Disk 14 is slow")
    assert shown_of(html_of(operators, f"{poll}&hold", **HTMX)) == "10 of 14 memories that match"
    assert shown_of(html_of(operators, poll, **HTMX)) == "11 of 14 memories that match"  # one is pushed off, and stays
    monkeypatch.setattr(capped, "CAP", 5)
    assert shown_of(html_of(operators, f"{LIST}?service=disk")) == "10 of 5+ memories that match"


def test_new_memories_are_held_back_when_asked_and_the_button_brings_them(operators):
    kept, gone = MemoryFactory.create_batch(2)
    address = polling(html_of(operators, f"{LIST}?status=active"))
    new = MemoryFactory()
    verbs.edit(kept, by="other", observation="It takes two hours")
    verbs.deactivate(gone, by="other")
    html = html_of(operators, f"{address}&hold=1", **HTMX)
    assert "1 new</button>" in html
    assert f'id="memory-{new.pk}"' not in html
    assert "It takes two hours" in html
    assert f'<tr id="memory-{gone.pk}" hx-swap-oob="delete">' in html
    assert operators.get(f"{polling(html)}&hold=1", headers=HTMX).status_code == 204
    button = re.search(r'id="memories-held-show" hx-get="([^"]+)"', html)[1].replace("&amp;", "&")
    html = html_of(operators, button, **HTMX)
    assert f'<tr id="memory-{new.pk}"' in html
    assert "memories-held-show" not in html


def test_what_was_changed_and_taken_back_between_two_polls_is_told_too(operators):
    memory = MemoryFactory()
    address = polling(html_of(operators, LIST))
    change = verbs.edit(memory, by="ann", observation="Shown by the browser that sent it")
    restore(memory, change, by="ann")
    assert listed(html_of(operators, address, **HTMX)) == [memory.pk]


def test_what_no_longer_matches_the_filter_goes(operators):
    memory, other = MemoryFactory(), MemoryFactory()
    address = polling(html_of(operators, f"{LIST}?status=active"))
    verbs.deactivate(memory, by="other")
    html = html_of(operators, address, **HTMX)
    assert f'<tr id="memory-{memory.pk}" hx-swap-oob="delete">' in html
    assert f"{other.pk}." in polling(html)


def test_a_list_that_empties_says_so_in_its_place(operators):
    rows = MemoryFactory.create_batch(3, service="caddy")
    address = polling(html_of(operators, f"{LIST}?service=caddy"))
    for row in rows:
        verbs.delete(row, by="other")
    response = operators.get(address, headers=HTMX)
    assert response["HX-Retarget"] == "#memories"
    html = response.content.decode()
    assert "No memory matches." in html
    assert operators.get(polling(html), headers=HTMX).status_code == 204


def test_a_page_whose_rows_are_all_gone_gives_way_to_the_first_one(operators, monkeypatch):
    monkeypatch.setattr(list_views, "SIZE", 2)
    rows = [MemoryFactory(updated_at=timezone.now() - timedelta(hours=n)) for n in range(4)]
    further = re.search(r'<a href="([^"]+)" rel="next"', html_of(operators, LIST))[1].replace("&amp;", "&")
    assert listed(html_of(operators, LIST + further)) == [rows[2].pk, rows[3].pk]
    for row in rows[2:]:
        verbs.delete(row, by="other")
    assert listed(html_of(operators, LIST + further)) == [rows[0].pk, rows[1].pk]


# -- adding ------------------------------------------------------------------------------------------------------

GIVEN = {"observation": "Takes 60 s to start", "category": "timing", "service": "Jellyfin", "confidence": "0.8"}


def test_an_operators_memory_has_no_session_tier_0_and_a_history(operators):
    response = operators.post(LIST, GIVEN, follow=True)
    memory = Memory.objects.get()
    assert (memory.session_id, memory.tier, memory.source, memory.confidence) == (None, 0, "human", 0.8)
    assert memory.service == "jellyfin"
    change = memory.changes.get()
    assert (change.kind, change.actor) == (Change.CREATED, "one-operator")
    assert f'<a href="/memories/{memory.pk}">Memory {memory.pk}</a> is added.' in response.content.decode()


def test_one_and_a_half_is_stored_as_one(operators):
    operators.post(LIST, GIVEN | {"confidence": "1.5"})
    assert Memory.objects.get().confidence == 1.0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"observation": "  "}, "This field is required."),
        ({"observation": "!!"}, "observation is empty"),
        ({"service": "two words"}, "one word of letters"),
        ({"category": "pattern"}, "ops memories have timing"),
        ({"category": ""}, "This field is required."),
        ({"confidence": "much"}, "Enter a number."),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_lost(operators, wrong, said):
    response = operators.post(LIST, GIVEN | wrong)
    assert response.status_code == 422
    html = response.content.decode()
    assert said in html
    assert "errorlist" in html
    assert (GIVEN | wrong)["service"] in html
    assert not Memory.objects.exists()


def test_what_is_known_already_is_refused_at_the_text(operators):
    operators.post(LIST, GIVEN)
    response = operators.post(LIST, GIVEN)
    assert response.status_code == 422
    assert "says exactly this already" in response.content.decode()
    assert Memory.objects.count() == 1


def test_a_viewer_cannot_add(viewer):
    assert viewer.post(LIST, GIVEN).status_code == 403
    assert not Memory.objects.exists()


@pytest.mark.parametrize("few", [0, 1, 500])
def test_many_that_match_are_found_as_few_are(viewer, monkeypatch, few):
    """Few are gathered first and sorted, many are met along the order's index: the page is the same."""
    monkeypatch.setattr(listing, "FEW", few)
    told = [MemoryFactory(observation=f"The disk of node {n} is slow", confidence=n / 10) for n in range(4)]
    MemoryFactory(observation="The fan is loud")
    html = html_of(viewer, f"{LIST}?text=DISK+slow&sort=confidence")
    assert listed(html) == [memory.pk for memory in told]
    assert "4 memories that match" in html


@pytest.mark.parametrize(("text", "matches"), [("ÖFFNET", True), ("tür", True), ("100%", True), ("1_0", False)])
def test_a_text_is_found_whatever_its_letters_and_signs(viewer, text, matches):
    memory = MemoryFactory(observation="Die Tür öffnet zu 100%, wenn die Disk voll ist")
    if text == "ÖFFNET" and connection.vendor == "sqlite":  # it knows the small letters of ASCII only
        matches = False
    assert listed(html_of(viewer, f"{LIST}?{urlencode({'text': text})}")) == ([memory.pk] if matches else [])
