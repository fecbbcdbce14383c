"""Bulk actions on memories in the admin: few rows, thousands, everything that matches."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.bulk_write import BATCH
from memories.models import Memory, MemoryChange
from tests.support.factories import MemoryFactory

LIST = "/admin/memories/memory/"
MANY = BATCH + 100
PAGE_SIZE = 18_000


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def choose(client, action: str, *memories: Memory, query: str = "", across: bool = False):
    """Tick the boxes, choose the action, press Go."""
    sent = {"action": action, "index": "0", "_selected_action": [memory.pk for memory in memories]}
    if across:
        sent["select_across"] = "1"
    return client.post(LIST + query, sent)


def confirm(client, page, **answers: object):
    """Press the button of the page in between, with what it carries and the answers."""
    assert page.status_code in (200, 422), page.headers.get("Location")
    html = page.content.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
    hidden.pop("csrfmiddlewaretoken", None)
    return client.post(page.context["post_url"], hidden | answers)


def said(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def make(number: int, **kwargs: object) -> list[Memory]:
    rows = [MemoryFactory.build(observation=f"Row {n}", **kwargs) for n in range(number)]
    return Memory.objects.bulk_create(rows)


def test_the_menu_offers_every_action_of_the_registry_and_not_djangos_own_delete(signed_in):
    MemoryFactory()
    html = signed_in.get(LIST).content.decode()
    for action in BULK_ACTIONS.values():
        assert f'<option value="{action.name}">' in html
    assert "delete_selected" not in html


def test_deactivating_takes_effect_at_once_with_a_change_row_each_and_touches_no_other(signed_in):
    first, second, other = MemoryFactory(), MemoryFactory(), MemoryFactory()
    untouched = Memory.objects.filter(pk=other.pk).values().get()
    response = choose(signed_in, "deactivate", first, second, query="?service=jellyfin")
    assert response.headers["Location"] == LIST + "?service=jellyfin"
    assert said(response) == "2 memories deactivated."
    assert set(Memory.objects.filter(active=False)) == {first, second}
    assert list(MemoryChange.objects.values_list("kind", "actor")) == [("deactivated", "operator")] * 2
    assert Memory.objects.filter(pk=other.pk).values().get() == untouched


def test_what_had_nothing_to_change_is_counted(signed_in):
    done, new = MemoryFactory(active=False, inactive_reason="operator"), MemoryFactory()
    response = choose(signed_in, "deactivate", done, new)
    assert said(response) == "1 memory deactivated; 1 memory had nothing to change."
    response = choose(signed_in, "reactivate", done)
    assert Memory.objects.get(pk=done.pk).active
    response = choose(signed_in, "mark_persistent", new)
    assert Memory.objects.get(pk=new.pk).persistent
    response = choose(signed_in, "unmark_persistent", new)
    assert not Memory.objects.get(pk=new.pk).persistent


def test_setting_confidence_asks_for_the_number_and_says_what_is_wrong_with_it_at_the_field(signed_in):
    memory, other = MemoryFactory(confidence=0.7), MemoryFactory(confidence=0.7)
    page = choose(signed_in, "set_confidence", memory)
    assert memory.observation in page.content.decode()
    for wrong, why in (("", "required"), ("much", "Enter a number")):
        again = confirm(signed_in, page, confidence=wrong)
        assert why in again.context["form"].errors["confidence"][0]
    assert not MemoryChange.objects.exists()
    response = confirm(signed_in, page, confidence="0.2", reason="It moved")
    assert response.headers["Location"] == LIST
    memory.refresh_from_db()
    assert (memory.confidence, memory.active, memory.inactive_reason) == (0.2, False, "lowered")
    assert MemoryChange.objects.get().reason == "It moved"
    assert Memory.objects.get(pk=other.pk).confidence == 0.7


def test_confidence_may_be_set_to_nought(signed_in):
    memory = MemoryFactory(confidence=0.7)
    confirm(signed_in, choose(signed_in, "set_confidence", memory), confidence="0")
    assert Memory.objects.get().confidence == 0.0


def test_merging_shows_the_rows_and_asks_which_text_stays(signed_in):
    one = MemoryFactory(observation="Takes 60s", confidence=0.6)
    two = MemoryFactory(observation="Takes a minute", confidence=0.9)
    other = MemoryFactory()
    page = choose(signed_in, "merge", one, two)
    html = page.content.decode()
    assert "Takes 60s" in html
    assert "Takes a minute" in html
    assert re.findall(r'name="target" value="(\d+)"( checked)?', html) == [(str(two.pk), " checked"), (str(one.pk), "")]
    response = confirm(signed_in, page, target=one.pk)
    assert said(response) == f"1 memory merged into memory {one.pk}."
    one.refresh_from_db()
    two.refresh_from_db()
    assert (one.observation, one.confidence, one.merged_count, one.active) == ("Takes 60s", 0.9, 1, True)
    assert (two.active, two.inactive_reason, two.superseded_by) == (False, "merged", one)
    assert Memory.objects.get(pk=other.pk).active


def test_a_merged_memory_may_get_a_new_text(signed_in):
    one, two = MemoryFactory(), MemoryFactory()
    page = choose(signed_in, "merge", one, two)
    confirm(signed_in, page, target=two.pk, observation="Both of it")
    assert Memory.objects.get(pk=two.pk).observation == "Both of it"


def test_memories_that_cannot_be_one_are_not_merged_and_the_reason_is_said(signed_in):
    one, two = MemoryFactory(service="caddy"), MemoryFactory(service="jellyfin")
    response = choose(signed_in, "merge", one, two)
    assert "differ in their service" in said(response)
    assert "2 to 50" in said(choose(signed_in, "merge", one))
    assert not MemoryChange.objects.exists()


def test_a_target_that_was_not_shown_is_refused(signed_in):
    one, two, other = MemoryFactory(), MemoryFactory(), MemoryFactory()
    again = confirm(signed_in, choose(signed_in, "merge", one, two), target=other.pk)
    assert again.context["form"].errors["target"]
    assert not MemoryChange.objects.exists()


def test_deleting_asks_first_and_keeps_the_history(signed_in):
    gone, stays = MemoryFactory(observation="Goes"), MemoryFactory()
    page = choose(signed_in, "delete", gone)
    assert "Goes" in page.content.decode()
    assert Memory.objects.count() == 2
    response = confirm(signed_in, page, reason="Wrong from the start")
    assert said(response) == "1 memory deleted."
    assert list(Memory.objects.all()) == [stays]
    change = MemoryChange.objects.get()
    assert (change.kind, change.actor, change.reason) == ("deleted", "operator", "Wrong from the start")
    assert change.before["observation"] == "Goes"


def test_deleting_everything_that_matches_works_in_batches(signed_in):
    make(MANY, service="jellyfin")
    stays = make(3, service="caddy")
    shown = Memory.objects.filter(service="jellyfin")[:50]
    page = choose(signed_in, "delete", *shown, query="?service=jellyfin", across=True)
    html = page.content.decode()
    assert f"{MANY} memories" in html
    assert html.count("/change/") < 20
    assert len(html) < PAGE_SIZE
    with CaptureQueriesContext(connection) as queries:
        response = confirm(signed_in, page)
    assert said(response) == f"{MANY} memories deleted."
    assert response.headers["Location"] == LIST + "?service=jellyfin"
    assert set(Memory.objects.all()) == set(stays)
    assert MemoryChange.objects.filter(kind="deleted").count() == MANY
    assert len(queries) < 65  # batches, not rows


def test_ticked_rows_travel_as_ranges(signed_in):
    rows = make(MANY)
    stays = MemoryFactory()
    assert len(rows) < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    page = choose(signed_in, "delete", *rows)
    html = page.content.decode()
    assert len(html) < PAGE_SIZE
    ids = re.search(r'name="ids" value="([^"]*)"', html)
    assert ids.group(1) == f"{rows[0].pk}-{rows[-1].pk}"
    assert said(confirm(signed_in, page)) == f"{MANY} memories deleted."
    assert list(Memory.objects.all()) == [stays]


def test_everything_that_matches_is_always_asked_about_first(signed_in):
    make(120)
    page = choose(signed_in, "deactivate", *Memory.objects.all()[:50], across=True)
    assert "120 memories" in page.content.decode()
    assert not Memory.objects.filter(active=False).exists()
    assert said(confirm(signed_in, page)) == "120 memories deactivated."


def test_rows_that_came_while_the_page_was_open_are_not_touched(signed_in):
    rows = make(3)
    page = choose(signed_in, "delete", rows[0], across=True)
    late = MemoryFactory()
    assert said(confirm(signed_in, page)) == "3 memories deleted."
    assert list(Memory.objects.all()) == [late]


def test_a_selection_that_changed_meanwhile_is_shown_again_instead_of_carried_out(signed_in):
    rows = make(3, service="jellyfin") + make(2, service="caddy")
    page = choose(signed_in, "delete", rows[0], query="?service=jellyfin", across=True)
    Memory.objects.filter(pk=rows[4].pk).update(service="jellyfin")
    again = confirm(signed_in, page)
    assert "The selection changed from 3 to 4" in " ".join(again.content.decode().split())
    assert Memory.objects.count() == 5
    assert said(confirm(signed_in, again)) == "4 memories deleted."


def test_what_is_gone_already_is_said(signed_in):
    memory = MemoryFactory()
    page = choose(signed_in, "delete", memory)
    Memory.objects.all().delete()
    assert "No memory is selected" in said(confirm(signed_in, page))


@pytest.mark.parametrize("ids", ["nonsense", "1-", "1-999999999999", ""])
def test_a_selection_nobody_made_changes_nothing(signed_in, ids):
    MemoryFactory()
    response = signed_in.post(LIST + "bulk/deactivate", {"ids": ids})
    assert response.status_code == 302
    assert "selection could not be read" in said(response) or "No memory is selected" in said(response)
    assert Memory.objects.get().active


def test_a_query_string_that_cannot_be_read_changes_nothing(signed_in):
    MemoryFactory()
    response = signed_in.post(
        LIST + "bulk/delete?updated_at__year=x", {"all_matching": "1", "confirmed": "1", "count": "1"}
    )
    assert response.headers["Location"] == LIST
    assert "filters could not be read" in said(response)
    assert Memory.objects.count() == 1


def test_an_action_is_never_carried_out_by_following_a_link(signed_in):
    memory = MemoryFactory()
    assert signed_in.get(LIST + f"bulk/delete?ids={memory.pk}&confirmed=1&count=1").status_code == 405
    assert signed_in.post(LIST + "bulk/nonsense", {"ids": str(memory.pk)}).status_code == 404


def test_the_buttons_on_a_memorys_page_come_back_to_it(signed_in):
    memory = MemoryFactory()
    address = f"{LIST}{memory.pk}/change/"
    response = signed_in.post(LIST + "bulk/deactivate", {"ids": str(memory.pk), "back": str(memory.pk)})
    assert response.headers["Location"] == address
    page = signed_in.post(LIST + "bulk/delete", {"ids": str(memory.pk), "back": str(memory.pk)})
    assert confirm(signed_in, page).headers["Location"] == LIST


def test_who_may_change_but_not_delete_is_offered_no_deletion(client, django_user_model):
    editor = django_user_model.objects.create_user("editor", is_staff=True)
    editor.user_permissions.set(Permission.objects.filter(codename__in=("view_memory", "change_memory")))
    client.force_login(editor)
    memory = MemoryFactory()
    html = client.get(LIST).content.decode()
    assert '<option value="deactivate">' in html
    assert '<option value="delete">' not in html
    assert client.post(LIST + "bulk/delete", {"ids": str(memory.pk)}).status_code == 403
    assert choose(client, "delete", memory).status_code == 302
    assert Memory.objects.count() == 1
