"""`/memories/{id}`: the edit in place and its conflicts, deleting, undoing; with htmx and as plain forms."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.lifecycle import verbs
from memories.models import Change, Inactive, Memory, MemoryChange, Verdict
from tests.memories.people import HTMX, delete, put, signed_in
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

OLD = timezone.now() - timedelta(days=9)


@pytest.fixture
def operators(db):
    return signed_in("operator", "ann")


@pytest.fixture
def viewer(db):
    return signed_in("viewer")


@pytest.fixture
def memory(db):
    made = MemoryFactory(observation="Takes 60 s to start", confidence=0.654321, updated_at=OLD)
    MemoryFactory(observation="Another one")
    return made


@pytest.fixture
def others(memory):
    """The rows that no test here may move."""
    return list(Memory.objects.exclude(pk=memory.pk).values())


def at(memory: Memory) -> str:
    return f"/memories/{memory.pk}"


def seen(client, memory: Memory) -> str:
    html = client.get(f"{at(memory)}/row?edit", headers=HTMX).content.decode()
    return re.search(r'name="seen" value="(\d+)"', html)[1]


def fields(client, memory: Memory, **given: str) -> dict[str, str]:
    """What the form sends when only `given` was changed in it."""
    html = client.get(f"{at(memory)}/row?edit", headers=HTMX).content.decode()
    confidence = re.search(r'name="confidence" value="([^"]+)"', html)[1]
    active = "true" if re.search(r'name="active" value="true"[^>]* checked', html) else "false"
    said = {"observation": memory.observation, "confidence": confidence, "active": active}
    return said | {"seen": seen(client, memory)} | given


def test_the_row_becomes_a_form_with_a_slider_and_back(operators, memory):
    html = operators.get(f"{at(memory)}/row?edit", headers=HTMX).content.decode()
    assert 'type="range"' in html
    assert 'value="0.65"' in html
    assert "data-editing" in html
    assert f'hx-put="{at(memory)}"' in html
    assert "data-editing" not in operators.get(f"{at(memory)}/row", headers=HTMX).content.decode()


def test_an_edit_of_the_text_keeps_the_confidence_and_refreshes_the_time(operators, memory, others):
    response = put(operators, at(memory), fields(operators, memory, observation="Takes 90 s to start"))
    assert response.status_code == 200
    memory.refresh_from_db()
    assert memory.observation == "Takes 90 s to start"
    assert memory.confidence == 0.654321
    assert memory.updated_at > OLD + timedelta(days=8)
    change = memory.changes.get()
    assert (change.kind, change.actor) == (Change.EDITED, "ann")
    assert "confidence" not in change.after
    html = response.content.decode()
    assert html.startswith(f'<tr id="memory-{memory.pk}"')
    assert f'hx-post="{at(memory)}/undo/{change.pk}"' in html
    assert list(Memory.objects.exclude(pk=memory.pk).values()) == others


def test_the_slider_sets_the_confidence_and_one_and_a_half_is_one(operators, memory):
    put(operators, at(memory), fields(operators, memory, confidence="0.8"))
    memory.refresh_from_db()
    assert memory.confidence == 0.8
    put(operators, at(memory), fields(operators, memory, confidence="1.5"))
    memory.refresh_from_db()
    assert memory.confidence == 1.0


def test_raising_an_inactive_one_to_the_threshold_brings_it_back(operators):
    memory = MemoryFactory(confidence=0.2, active=False, inactive_reason=Inactive.DECAYED)
    put(operators, at(memory), fields(operators, memory, confidence="0.3"))
    memory.refresh_from_db()
    assert (memory.active, memory.inactive_reason, memory.confidence) == (True, "", 0.3)


def test_the_box_takes_it_out_of_use_and_brings_it_back(operators, memory):
    put(operators, at(memory), fields(operators, memory, active="false"))
    memory.refresh_from_db()
    assert (memory.active, memory.inactive_reason, memory.updated_at) == (False, Inactive.OPERATOR, OLD)
    put(operators, at(memory), fields(operators, memory, active="true"))
    memory.refresh_from_db()
    assert (memory.active, memory.confidence) == (True, 0.654321)
    assert [change.kind for change in memory.changes.order_by("pk")] == [Change.DEACTIVATED, Change.REACTIVATED]


def test_text_and_box_at_once_are_one_change(operators, memory):
    put(operators, at(memory), fields(operators, memory, observation="Never starts", active="false"))
    memory.refresh_from_db()
    assert (memory.observation, memory.active) == ("Never starts", False)
    assert memory.changes.get().kind == Change.EDITED


def test_what_is_not_sent_stays(operators, memory):
    put(operators, at(memory), {"observation": "Only this"})
    memory.refresh_from_db()
    assert (memory.observation, memory.confidence, memory.active) == ("Only this", 0.654321, True)


def test_saving_what_is_there_changes_nothing(operators, memory):
    response = put(operators, at(memory), fields(operators, memory))
    assert "Nothing was changed." in response.content.decode()
    assert not memory.changes.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"observation": " "}, "observation is empty"),
        ({"confidence": "nan"}, "Enter a number."),
        ({"confidence": "inf"}, "Enter a number."),
        ({"active": "maybe"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_in_the_form_and_nothing_changes(operators, memory, wrong, said):
    before = Memory.objects.filter(pk=memory.pk).values().get()
    for headers in (HTMX, {"X-Plain": "1"}):
        response = put(operators, at(memory), fields(operators, memory, **wrong), **headers)
        assert response.status_code == 422
        if "active" not in wrong:
            assert said in response.content.decode()
    assert Memory.objects.filter(pk=memory.pk).values().get() == before
    assert not memory.changes.exists()


# -- two operators -----------------------------------------------------------------------------------------------


def test_of_two_operators_the_second_sees_both_versions_and_loses_nothing(operators, memory):
    bob = signed_in("operator", "bob")
    anns = fields(operators, memory, observation="Takes 70 s to start")
    bobs = fields(bob, memory, observation="Takes 80 s to start", confidence="0.9")
    assert put(operators, at(memory), anns).status_code == 200
    refused = put(bob, at(memory), bobs)
    assert refused.status_code == 409
    html = refused.content.decode()
    assert re.search(r"<textarea[^>]*>Takes 80 s to start</textarea>", html)
    assert '<span class="text">Takes 70 s to start</span>' in html
    assert "edited by ann" in html
    memory.refresh_from_db()
    assert (memory.observation, memory.confidence) == ("Takes 70 s to start", 0.654321)
    assert memory.changes.count() == 1
    # Having seen it, bob saves his.
    again = bobs | {"seen": re.search(r'name="seen" value="(\d+)"', html)[1]}
    assert put(bob, at(memory), again).status_code == 200
    memory.refresh_from_db()
    assert (memory.observation, memory.confidence) == ("Takes 80 s to start", 0.9)
    assert [change.actor for change in memory.changes.order_by("pk")] == ["ann", "bob"]


def test_the_conflict_is_shown_on_the_whole_page_to_a_plain_form(operators, memory):
    mine = fields(operators, memory, observation="Mine")
    verbs.reinforce(memory, by="agent:watch")
    response = operators.post(at(memory), mine | {"_method": "PUT"})
    assert response.status_code == 409
    html = response.content.decode()
    assert "<html" in html
    assert re.search(r"<textarea[^>]*>Mine</textarea>", html)
    assert "reinforced by agent:watch" in html


def test_an_edit_of_what_was_deleted_meanwhile_hands_the_text_back(operators, memory):
    mine = fields(operators, memory, observation="My long thought")
    verbs.delete(memory.pk, by="bob")
    for headers in (HTMX, {"X-Plain": "1"}):
        response = put(operators, at(memory), mine, **headers)
        assert response.status_code == 409
        assert "My long thought" in response.content.decode()
        assert "was deleted in the meantime" in response.content.decode()
    assert operators.get(f"{at(memory)}/row", headers=HTMX).content == b""


# -- plain forms -------------------------------------------------------------------------------------------------


def test_a_plain_form_edits_and_deletes_and_says_so_on_the_next_page(operators, memory, others):
    page = operators.get(at(memory)).content.decode()
    assert f'href="{at(memory)}?edit#edit"' in page
    page = operators.get(f"{at(memory)}?edit").content.decode()
    assert 'name="_method" value="PUT"' in page
    sent = fields(operators, memory, observation="Plainly said") | {"_method": "PUT"}
    response = operators.post(at(memory), sent, follow=True)
    assert response.redirect_chain == [(at(memory), 302)]
    html = response.content.decode()
    assert "is edited" in html
    assert f'action="{at(memory)}/undo/{memory.changes.get().pk}"' in html
    response = operators.post(at(memory), {"_method": "DELETE"}, follow=True)
    assert response.redirect_chain == [("/memories", 302)]
    assert "is deleted. Its history stays." in response.content.decode()
    assert list(Memory.objects.values()) == others


# -- deleting ----------------------------------------------------------------------------------------------------


def test_deleting_asks_first_and_then_leaves_the_history(operators, memory, others):
    html = operators.get(f"{at(memory)}/row?delete", headers=HTMX).content.decode()
    assert "Delete this memory?" in html
    assert Memory.objects.filter(pk=memory.pk).exists()
    response = delete(operators, at(memory))
    assert response.status_code == 200
    assert response.content.decode().startswith(f'<tr id="memory-{memory.pk}" hidden>')
    assert list(Memory.objects.values()) == others
    change = MemoryChange.objects.get(memory_uuid=memory.uuid)
    assert (change.kind, change.actor) == (Change.DELETED, "ann")
    assert "was deleted already" in delete(operators, at(memory)).content.decode()


# -- undo --------------------------------------------------------------------------------------------------------


def test_undo_brings_back_the_text_and_the_time_as_a_change_of_its_own(operators, memory, others):
    put(operators, at(memory), fields(operators, memory, observation="Wrong", confidence="0.9"))
    change = memory.changes.get()
    response = operators.post(f"{at(memory)}/undo/{change.pk}", headers=HTMX)
    assert response.status_code == 200
    assert response["HX-Trigger"] == "wake"
    memory.refresh_from_db()
    assert (memory.observation, memory.confidence, memory.updated_at) == ("Takes 60 s to start", 0.654321, OLD)
    restored = memory.changes.latest("pk")
    assert (restored.kind, restored.actor, restored.evidence) == (Change.RESTORED, "ann", {"before_change": change.pk})
    assert list(Memory.objects.exclude(pk=memory.pk).values()) == others


def test_undo_of_a_deactivation_brings_it_back_into_use(operators, memory):
    put(operators, at(memory), fields(operators, memory, active="false"))
    response = operators.post(f"{at(memory)}/undo/{memory.changes.get().pk}", follow=True)
    assert "is restored." in response.content.decode()
    memory.refresh_from_db()
    assert (memory.active, memory.inactive_reason) == (True, "")


def test_undo_is_refused_when_somebody_changed_it_since(operators, memory):
    put(operators, at(memory), fields(operators, memory, observation="Mine"))
    mine = memory.changes.get()
    verbs.edit(memory, by="bob", observation="Bob's text")
    response = operators.post(f"{at(memory)}/undo/{mine.pk}", headers=HTMX)
    assert response.status_code == 409
    assert "was changed again since" in response.content.decode()
    memory.refresh_from_db()
    assert memory.observation == "Bob's text"


def test_undo_takes_only_a_change_of_this_memory_and_not_its_creation(operators, memory):
    other = Memory.objects.exclude(pk=memory.pk).get()
    change = verbs.deactivate(other, by="bob")
    assert operators.post(f"{at(memory)}/undo/{change.pk}", headers=HTMX).status_code == 409
    assert operators.post(f"{at(memory)}/undo/999999", headers=HTMX).status_code == 404
    assert operators.get(f"{at(memory)}/undo/{change.pk}").status_code == 405
    operators.post("/memories", {"observation": "New", "category": "timing", "taxonomy": "ops"})
    new = Memory.objects.latest("pk")
    response = operators.post(f"{at(new)}/undo/{new.changes.get().pk}", headers=HTMX)
    assert response.status_code == 409
    assert "did not exist" in response.content.decode()


# -- the page ----------------------------------------------------------------------------------------------------


def test_the_page_shows_the_history_the_evidence_and_its_sessions(viewer, memory):
    session = SessionFactory()
    verbs.reinforce(
        memory, by="agent:watch", reason="Said again.", evidence={"text": "It takes a minute"}, session_id=session.pk
    )
    html = viewer.get(at(memory)).content.decode()
    for text in ("Takes 60 s to start", "Said again.", "It takes a minute", f'href="/sessions/{session.pk}"'):
        assert text in html
    assert viewer.get("/memories/999999").status_code == 404


def test_the_number_of_queries_does_not_depend_on_the_length_of_the_history(operators, memory):
    def queries(address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert operators.get(address).status_code == 200
        return len(captured)

    def happens(times: int) -> None:
        for _ in range(times):
            verbs.reinforce(memory, by="agent:watch", session_id=SessionFactory().pk)

    addresses = [f"/memories/{memory.pk}{rest}" for rest in ("", "?delete", "/row", "/row?edit", "/row?delete")]
    happens(3)
    few = [queries(address) for address in addresses]
    happens(3)
    assert [queries(address) for address in addresses] == few


def test_a_held_one_says_why(viewer):
    memory = MemoryFactory(verdict=Verdict.HOLD, verdict_reason="It reads like a secret.")
    assert "It reads like a secret." in viewer.get(at(memory)).content.decode()


# -- who ---------------------------------------------------------------------------------------------------------


def test_a_viewer_cannot_change_anything_by_any_route(viewer, memory):
    change = verbs.edit(memory, by="bob", observation="Bob's text")
    before = list(Memory.objects.order_by("pk").values())
    assert put(viewer, at(memory), {"observation": "x"}).status_code == 403
    assert viewer.post(at(memory), {"_method": "PUT", "observation": "x"}).status_code == 403
    assert delete(viewer, at(memory)).status_code == 403
    assert viewer.post(at(memory), {"_method": "DELETE"}).status_code == 403
    assert viewer.post(f"{at(memory)}/undo/{change.pk}").status_code == 403
    for what in ("edit", "delete"):
        assert "data-editing" not in viewer.get(f"{at(memory)}/row?{what}", headers=HTMX).content.decode()
    assert list(Memory.objects.order_by("pk").values()) == before


def test_a_post_without_a_method_is_no_edit(operators, memory):
    assert operators.post(at(memory), {"observation": "x"}).status_code == 405


def test_signed_out_nothing_changes(client, memory):
    assert put(client, at(memory), {"observation": "x"}).status_code == 403
    assert delete(client, at(memory)).status_code == 403
    assert client.post(at(memory), {"_method": "DELETE"}).status_code == 302
    assert Memory.objects.filter(pk=memory.pk, observation="Takes 60 s to start").exists()


# -- all fields, on the page of the memory -------------------------------------------------------------------------


def page_fields(client, memory: Memory) -> dict[str, str]:
    """What the browser sends of the form on the page when nothing is changed in it."""
    html = client.get(f"{at(memory)}?edit").content.decode()
    form = html.partition('id="edit"')[2].partition("</form>")[0]
    found: dict[str, str] = {}
    for field in re.findall(r"<input[^>]*>", form):
        name, value = (re.search(rf' {of}="([^"]*)"', field) for of in ("name", "value"))
        if name and ('type="checkbox"' not in field or " checked" in field):
            found[name[1]] = unescape(value[1]) if value else ("on" if 'type="checkbox"' in field else "")
    for name, options in re.findall(r'<select name="([^"]+)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        found[name] = chosen[1] if chosen else ""
    found["observation"] = memory.observation
    return found


def post(client, memory: Memory, sent: dict[str, str]):
    return client.post(at(memory), sent)


def test_the_form_of_the_page_sent_as_it_is_changes_nothing(operators):
    memory = MemoryFactory(
        project=ProjectFactory(),
        agent="watch",
        tags=["a", "b c"],
        relevance_score=0.3,
        confidence=0.654321,
        expires_at=timezone.now() + timedelta(days=9),
        persistent=True,
        surface="first monday",
    )
    before = Memory.objects.filter(pk=memory.pk).values().get()
    response = post(operators, memory, page_fields(operators, memory))
    assert response.status_code == 302
    assert Memory.objects.filter(pk=memory.pk).values().get() == before
    assert not memory.changes.exists()


@pytest.mark.parametrize(
    ("sent", "column", "value"),
    [
        ({"service": "Caddy"}, "service", "caddy"),
        ({"service": ""}, "service", None),
        ({"category": "dependency"}, "category", "dependency"),
        ({"tags": "restart, health,,restart"}, "tags", ["restart", "health"]),
        ({"persistent": "on"}, "persistent", True),
        ({"surface": "First Monday"}, "surface", "first monday"),
        ({"agent": "Watch"}, "agent", "watch"),
        ({"relevance_score": "0.25"}, "relevance_score", 0.25),
        ({"expires_at": "2031-03-05T10:30"}, "expires_at", datetime(2031, 3, 5, 10, 30, tzinfo=UTC)),
        ({"confidence": "0.9"}, "confidence", 0.9),
        ({"observation": "Never starts"}, "observation", "Never starts"),
        ({"active": "false"}, "active", False),
    ],
)
def test_every_field_can_be_changed_alone_and_undone(operators, memory, sent, column, value):
    before = getattr(memory, column)
    assert post(operators, memory, page_fields(operators, memory) | sent).status_code == 302
    memory.refresh_from_db()
    assert getattr(memory, column) == value
    change = memory.changes.get()
    assert set(change.after) - {"updated_at", "decayed_until", "confirmed_at", "inactive_reason", "trust"} == {column}
    operators.post(f"{at(memory)}/undo/{change.pk}")
    memory.refresh_from_db()
    assert getattr(memory, column) == before


def test_a_memory_moves_to_a_project_and_back(operators, memory):
    project = ProjectFactory(slug="house")
    post(operators, memory, page_fields(operators, memory) | {"project": str(project.pk)})
    memory.refresh_from_db()
    assert memory.project == project
    post(operators, memory, page_fields(operators, memory) | {"project": ""})
    memory.refresh_from_db()
    assert memory.project is None


def test_the_end_is_typed_in_the_zone_of_the_person(operators, memory):
    operators.cookies["zone"] = "Asia/Kathmandu"
    post(operators, memory, page_fields(operators, memory) | {"expires_at": "2031-03-05T10:30"})
    memory.refresh_from_db()
    assert memory.expires_at == datetime(2031, 3, 5, 4, 45, tzinfo=UTC)
    assert page_fields(operators, memory)["expires_at"] == "2031-03-05T10:30"


def test_a_box_without_a_tick_is_sent_by_its_absence(operators, memory):
    Memory.objects.filter(pk=memory.pk).update(persistent=True)
    sent = page_fields(operators, memory)
    del sent["persistent"]
    post(operators, memory, sent)
    memory.refresh_from_db()
    assert memory.persistent is False


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"service": "two words"}, "allowed is one word"),
        ({"category": "pattern"}, "Select a valid choice"),
        ({"tags": "x" * 51}, "at most 20, each of at most 50"),
        ({"agent": "a b"}, "allowed is a slug"),
        ({"relevance_score": "2"}, "less than or equal to 1"),
        ({"expires_at": "0001-01-01T00:00"}, "allowed are the years"),
        ({"project": "999"}, "Select a valid choice"),
    ],
)
def test_a_wrong_field_is_named_beside_it_and_nothing_changes(operators, memory, wrong, said):
    before = Memory.objects.filter(pk=memory.pk).values().get()
    response = post(operators, memory, page_fields(operators, memory) | wrong)
    assert response.status_code == 422
    assert said in unescape(response.content.decode())
    assert Memory.objects.filter(pk=memory.pk).values().get() == before


def test_what_the_person_left_alone_stays_as_somebody_else_changed_it(operators, memory):
    mine = page_fields(operators, memory) | {"tags": "mine"}
    verbs.edit(memory, by="bob", service="caddy", persistent=True)
    response = post(operators, memory, mine)
    assert response.status_code == 409
    html = response.content.decode()
    assert "Changed in the meantime: edited by bob" in html
    form = html.partition('id="edit"')[2].partition("</form>")[0]
    assert re.search(r'name="service" value="caddy"', form)
    assert re.search(r'name="tags" value="mine"', form)
    assert re.search(r'name="persistent"[^>]* checked', form)
    again = mine | {"seen": re.search(r'name="seen" value="(\d+)"', form)[1], "service": "caddy", "persistent": "on"}
    again |= {"initial-service": "caddy", "initial-persistent": "True"}
    assert post(operators, memory, again).status_code == 302
    memory.refresh_from_db()
    assert (memory.service, memory.persistent, memory.tags) == ("caddy", True, ["mine"])
