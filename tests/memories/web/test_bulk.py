"""`/memories/bulk`: the actions of the registry on what was ticked, on all that match, on nothing; and the export."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.bulk_write import BATCH
from memories.models import Change, Inactive, Memory, MemoryChange
from tests.memories.people import HTMX, delete, signed_in
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

BULK = "/memories/bulk"
THOUSAND = 2 * BATCH + 100
"""More than two batches."""


@pytest.fixture
def operators(db):
    return signed_in("operator", "ann")


@pytest.fixture
def viewer(db):
    return signed_in("viewer")


def values(*left_out: Memory) -> list[dict]:
    return list(Memory.objects.exclude(pk__in=[row.pk for row in left_out]).order_by("pk").values())


def hidden(html: str) -> dict[str, list[str]]:
    """The fields that the page in between sends along."""
    form = html[html.index('id="bulk-form"') :]
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form):
        found.setdefault(name, []).append(value)
    return found


def test_ticked_rows_are_deactivated_at_once_and_the_others_are_not_touched(operators):
    chosen, _ = MemoryFactory.create_batch(3), MemoryFactory.create_batch(3)
    before = values(*chosen)
    data = {"action": "deactivate", "id": [row.pk for row in chosen]}
    response = operators.post(f"{BULK}?service=jellyfin", data, follow=True)
    assert response.redirect_chain == [("/memories?service=jellyfin", 302)]
    assert "3 memories deactivated." in response.content.decode()
    for row in chosen:
        row.refresh_from_db()
        assert (row.active, row.inactive_reason) == (False, Inactive.OPERATOR)
        assert (row.changes.get().kind, row.changes.get().actor) == (Change.DEACTIVATED, "ann")
    assert values(*chosen) == before


def test_all_that_match_are_shown_first_and_then_all_of_them_and_no_other_change(operators):
    chosen = MemoryFactory.create_batch(12, service="caddy")
    MemoryFactory.create_batch(3)
    before = values(*chosen)
    data = {"action": "deactivate", "all_matching": "1", "id": [chosen[0].pk]}
    response = operators.post(f"{BULK}?service=caddy", data)
    html = response.content.decode()
    assert "Deactivate: 12 memories" in html
    assert "and 4 more: all that the list" in html
    assert not MemoryChange.objects.exists()
    late = MemoryFactory(service="caddy")  # not seen on the page, so not touched
    operators.post(f"{BULK}?service=caddy", hidden(html))
    assert set(Memory.objects.filter(active=False)) == set(chosen)
    assert values(*chosen, late) == before


def test_a_filter_that_matches_more_rows_than_a_batch(operators):
    Memory.objects.bulk_create(MemoryFactory.build_batch(THOUSAND, service="many"))
    other = MemoryFactory()
    before = values()[-1:]
    asked = operators.post(f"{BULK}?service=many", {"action": "set_confidence", "all_matching": "1"})
    assert "Set confidence: 1,100 memories" in asked.content.decode()
    response = operators.post(
        f"{BULK}?service=many", hidden(asked.content.decode()) | {"confidence": "0.9"}, follow=True
    )
    assert "1,100 memories set to 0.9." in response.content.decode()
    assert Memory.objects.filter(service="many", confidence=0.9).count() == THOUSAND
    assert MemoryChange.objects.filter(kind=Change.CONFIDENCE_SET, actor="ann").count() == THOUSAND
    assert values()[-1:] == before
    assert not other.changes.exists()


@pytest.mark.parametrize("data", [{}, {"id": []}, {"id": ["x", "-1", "9" * 30]}, {"id": ["424242"]}])
def test_on_nothing_nothing_happens_and_it_says_so(operators, data):
    MemoryFactory()
    before = values()
    response = operators.post(BULK, data | {"action": "deactivate"}, follow=True)
    assert "No memory is selected. Nothing was changed." in response.content.decode()
    delete(operators, f"{BULK}?service=none", {"all_matching": "1"})
    assert "No memory is selected." in operators.get("/memories").content.decode()
    assert values() == before


def test_a_filter_that_cannot_be_read_does_not_mean_everything(operators):
    MemoryFactory()
    for query in ("confidence_min=9", "category=nonsense", "status=all"):
        response = operators.post(f"{BULK}?{query}", {"action": "deactivate", "all_matching": "1"}, follow=True)
        assert "filters could not be read. Nothing was changed." in response.content.decode()
        delete(operators, f"{BULK}?{query}", {"all_matching": "1"})
    assert Memory.objects.get().active


def test_an_unknown_action_is_refused(operators):
    row = MemoryFactory()
    for data in ({"action": "explode", "id": row.pk}, {"id": row.pk}):
        assert "Nothing was changed." in operators.post(BULK, data, follow=True).content.decode()
    assert not MemoryChange.objects.exists()


def test_deleting_asks_and_leaves_the_histories(operators):
    chosen, kept = MemoryFactory.create_batch(5), MemoryFactory()
    asked = operators.post(BULK, {"action": "delete", "id": [row.pk for row in chosen]}).content.decode()
    assert "Delete: 5 memories" in asked
    assert Memory.objects.count() == 6
    sent = hidden(asked)
    response = operators.post(BULK, sent, follow=True)
    assert "5 memories deleted." in response.content.decode()
    assert list(Memory.objects.all()) == [kept]
    assert MemoryChange.objects.filter(kind=Change.DELETED).count() == 5


def test_a_delete_deletes_without_asking_again(operators):
    chosen, kept = MemoryFactory.create_batch(2), MemoryFactory()
    assert delete(operators, BULK, {"id": [row.pk for row in chosen]}).status_code == 302
    assert list(Memory.objects.all()) == [kept]


def test_a_delete_of_several_ids_deletes_all_of_them_or_none_and_says_so(operators):
    def refused(data: dict, words: str) -> None:
        rows = MemoryFactory.create_batch(3)
        names = {"one": rows[0].pk, "two": rows[1].pk, "three": rows[2].pk, "gone": 10**9}
        sent = {name: [str(names.get(value, value)) for value in several] for name, several in data.items()}
        response = delete(operators, BULK, sent)
        assert (response.status_code, response.content.decode()) == (422, words), data
        assert Memory.objects.filter(pk__in=[row.pk for row in rows]).count() == 3
        assert "Nothing was changed." in words

    for sent in (
        lambda pks: {"ids": pks},
        lambda pks: {"ids": [f"{pks[0]}-{pks[1]}", pks[2]]},
        lambda pks: {"ids": [pks[0], f"{pks[1]},{pks[2]}"]},
        lambda pks: {"id": pks[:1], "ids": pks[1:]},
    ):
        rows, kept = MemoryFactory.create_batch(3), MemoryFactory()
        assert delete(operators, BULK, sent([row.pk for row in rows])).status_code == 302
        assert "3 memories deleted." in operators.get("/memories").content.decode()
        assert list(Memory.objects.all()) == [kept]
        kept.delete()
    unreadable = "The selection could not be read. Nothing was changed."
    refused({"ids": ["one", "x"]}, unreadable)
    refused({"ids": ["one-two", "-3"]}, unreadable)
    refused({"id": ["one", "two", "three x"]}, unreadable)
    refused({"ids": ["one"], "id": ["two", ""]}, unreadable)
    refused({"ids": ["one", "gone"]}, f"There is no memory {10**9}. Nothing was changed.")
    refused({"id": ["two", "gone"]}, f"There is no memory {10**9}. Nothing was changed.")


def test_what_changed_since_it_was_shown_is_shown_again(operators):
    chosen = MemoryFactory.create_batch(3, service="caddy")
    asked = operators.post(f"{BULK}?service=caddy", {"action": "delete", "all_matching": "1"}).content.decode()
    Memory.objects.filter(pk=chosen[0].pk).update(service="other")
    response = operators.post(f"{BULK}?service=caddy", hidden(asked))
    assert response.status_code == 422
    assert "The selection changed from 3 to 2 memories. Nothing was changed yet." in response.content.decode()
    assert Memory.objects.count() == 3


def test_an_answer_that_is_wrong_is_said_at_its_field(operators):
    row = MemoryFactory()
    data = {"action": "set_confidence", "id": row.pk, "confirmed": "1", "confidence": "much"}
    response = operators.post(BULK, data)
    assert response.status_code == 422
    assert "Enter a number." in response.content.decode()
    operators.post(BULK, data | {"confidence": "1.5"})
    row.refresh_from_db()
    assert row.confidence == 1.0


def test_set_confidence_starts_at_the_current_value(operators):
    rows = [*MemoryFactory.create_batch(2, confidence=0.35), MemoryFactory(confidence=0.9)]
    for chosen, value, words in (
        (rows[:1], "0.35", "Now 0.35."),
        (rows[:2], "0.35", "Now 0.35."),
        (rows, "0.53", "Now 0.35 to 0.90, 0.53 on average."),
    ):
        asked = operators.post(BULK, {"action": "set_confidence", "id": [row.pk for row in chosen]}).content.decode()
        assert re.search(rf'name="confidence" value="{value}"', asked), value
        assert words in asked


def test_merging_asks_which_one_stays(operators):
    one, two, other = MemoryFactory(confidence=0.5), MemoryFactory(confidence=0.9), MemoryFactory()
    asked = operators.post(BULK, {"action": "merge", "id": [one.pk, two.pk]}).content.decode()
    assert "Which memory stays?" in asked
    operators.post(BULK, hidden(asked) | {"target": one.pk, "observation": "Both in one"})
    one.refresh_from_db(), two.refresh_from_db()
    assert (one.observation, one.confidence, two.superseded_by_id) == ("Both in one", 0.9, one.pk)
    assert not other.changes.exists()
    refused = operators.post(BULK, {"action": "merge", "id": [one.pk]}, follow=True)
    assert "Choose 2 to 50 memories to merge" in refused.content.decode()
    odd = MemoryFactory(service="caddy")
    refused = operators.post(BULK, {"action": "merge", "id": [one.pk, odd.pk]}, follow=True)
    assert "differ in their service" in refused.content.decode()


@pytest.mark.parametrize("name", list(BULK_ACTIONS))
def test_every_action_of_the_registry_can_be_asked_for_in_the_list(operators, name):
    row = MemoryFactory()
    assert f'name="action" value="{name}"' in operators.get("/memories").content.decode()
    assert operators.post(BULK, {"action": name, "id": row.pk}).status_code in (200, 302)


@pytest.mark.parametrize("name", list(BULK_ACTIONS))
def test_the_page_in_between_costs_the_same_however_many_it_is_about(operators, name):
    def queries() -> int:
        data = {"action": name, "id": list(Memory.objects.values_list("pk", flat=True))}
        if name != "merge":
            data |= {"all_matching": "1"}
        with CaptureQueriesContext(connection) as captured:
            assert operators.post(BULK, data).status_code == 200
        return len(captured)

    MemoryFactory.create_batch(5)
    few = queries()
    MemoryFactory.create_batch(5)
    assert queries() == few


def test_the_export_is_a_file_of_exactly_what_was_chosen(viewer):
    chosen = MemoryFactory.create_batch(3, service="caddy")
    MemoryFactory()
    for data in ({"id": [row.pk for row in chosen]}, {"all_matching": "1"}):
        response = viewer.post(f"{BULK}?service=caddy", data | {"action": "export"})
        assert response["Content-Type"] == "application/x-ndjson"
        assert re.search(r'attachment; filename="memories-[\d-]+\.jsonl"', response["Content-Disposition"])
        lines = b"".join(response.streaming_content).decode().splitlines()
        assert [json.loads(line)["uuid"] for line in lines] == [str(row.uuid) for row in chosen]


@pytest.mark.parametrize("name", [*BULK_ACTIONS, "", "explode"])
def test_a_viewer_changes_nothing_in_bulk(viewer, name):
    rows = MemoryFactory.create_batch(2)
    before = values()
    ids = [row.pk for row in rows]
    data = {"action": name, "id": ids, "confirmed": "1", "confidence": "0.1", "target": ids[0]}
    assert viewer.post(BULK, data).status_code in ((302,) if name == "explode" else (403,))
    assert viewer.post(f"{BULK}?service=jellyfin", data | {"all_matching": "1"}).status_code in (302, 403)
    assert delete(viewer, BULK, {"id": ids}).status_code == 403
    assert viewer.post(BULK, data | {"_method": "DELETE"}).status_code in (302, 403)
    assert values() == before


def test_signed_out_and_by_get_there_is_nothing(client, operators):
    row = MemoryFactory()
    assert client.post(BULK, {"action": "deactivate", "id": row.pk}).status_code == 302
    assert delete(client, BULK, {"id": [row.pk]}).status_code == 403
    assert operators.get(BULK).status_code == 405
    assert Memory.objects.get().active


def undo_of(html: str) -> str:
    """Where the message's Undo leads."""
    found = re.search(r'<form method="post" action="([^"]+)"[^>]* class="toast-undo"', html)
    assert found, "The message offers no Undo."
    return unescape(found[1])


def test_what_was_done_in_bulk_is_taken_back_from_its_message_and_nobody_else_is_touched(operators):
    chosen, _ = MemoryFactory.create_batch(3), MemoryFactory.create_batch(2)
    before = values()
    done = operators.post(
        f"{BULK}?service=jellyfin", {"action": "deactivate", "id": [row.pk for row in chosen]}, follow=True
    )
    assert values() != before
    response = operators.post(undo_of(done.content.decode()), follow=True)
    assert response.redirect_chain == [("/memories?service=jellyfin", 302)]
    assert "3 memories are as they were before." in response.content.decode()
    assert values() == before


def test_an_undo_by_htmx_says_so_and_wakes_the_list(operators):
    rows = MemoryFactory.create_batch(3)
    data = {"action": "deactivate", "id": [row.pk for row in rows]}
    address = undo_of(operators.post(BULK, data, follow=True).content.decode())
    verbs.reactivate(rows[0], by="bob")
    response = operators.post(address, headers=HTMX)
    assert (response.status_code, response["HX-Trigger"]) == (200, "wake")
    html = response.content.decode()
    assert "2 memories are as they were before; 1 was changed since and left alone." in html
    assert 'id="toasts" hx-swap-oob="beforeend"' in html
    assert "already" in operators.post(address, headers=HTMX).content.decode()


def test_a_merge_is_taken_back_whole_and_a_merge_of_which_one_was_changed_is_not(operators):
    rows = MemoryFactory.create_batch(3)
    before = values()
    asked = operators.post(BULK, {"action": "merge", "id": [row.pk for row in rows]})
    answer = hidden(asked.content.decode()) | {"target": str(rows[0].pk), "observation": "In one"}
    done = operators.post(BULK, answer, follow=True).content.decode()
    assert "2 memories merged" in done
    operators.post(undo_of(done))
    assert values() == before
    asked = operators.post(BULK, {"action": "merge", "id": [row.pk for row in rows]})
    answer = hidden(asked.content.decode()) | {"target": str(rows[0].pk)}
    done = operators.post(BULK, answer, follow=True).content.decode()
    verbs.edit(rows[2], by="bob", observation="Said anew")
    before = values()
    response = operators.post(undo_of(done), headers=HTMX)
    assert response.status_code == 409
    assert "a merge goes back whole or not at all" in response.content.decode()
    assert values() == before


def test_a_deletion_offers_no_undo(operators):
    row = MemoryFactory()
    response = operators.post(
        BULK, {"action": "delete", "id": [row.pk], "confirmed": "1", "_method": "DELETE"}, follow=True
    )
    html = response.content.decode()
    assert "1 memory deleted." in html
    assert "toast-undo" not in html


def test_more_memories_than_a_batch_are_taken_back_at_once(operators):
    made = MemoryFactory.build_batch(THOUSAND, service="many")
    for n, row in enumerate(made):
        row.confidence = 0.31 + n / 10000  # each has its own to go back to
    Memory.objects.bulk_create(made)
    before = values()
    change = BULK_ACTIONS["set_confidence"].run(Memory.objects.all(), by="ann", confidence=0.9).change
    response = operators.post(f"/memories/undo/{change}", follow=True)
    assert "1,100 memories are as they were before." in response.content.decode()
    assert values() == before


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_viewer_and_a_stranger_take_nothing_back(viewer, client, headers):
    rows = MemoryFactory.create_batch(2)
    change = BULK_ACTIONS["deactivate"].run(Memory.objects.all(), by="ann").change
    assert viewer.post(f"/memories/undo/{change}", headers=headers).status_code == 403
    assert client.post(f"/memories/undo/{change}", headers=headers).status_code == (403 if headers else 302)
    assert viewer.get(f"/memories/undo/{change}", headers=headers).status_code == 405
    assert not Memory.objects.filter(pk__in=[row.pk for row in rows], active=True).exists()


def test_an_undo_of_what_there_is_not_says_so(operators):
    response = operators.post(f"/memories/undo/{10**30}", headers=HTMX)
    assert response.status_code == 409
    assert "There is no change" in response.content.decode()
