"""Adding and changing a memory in the admin: through the store and the verbs, with the person's name on it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.contrib.messages import get_messages
from django.utils import timezone

from memories.models import Memory, MemoryChange
from tests.memories.people import person
from tests.support.factories import MemoryFactory, ProjectFactory

ADD = "/admin/memories/memory/add/"


def url(memory: Memory) -> str:
    return f"/admin/memories/memory/{memory.pk}/change/"


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def fields(html: str) -> dict[str, str]:
    """What a browser would send for the form as it stands."""
    found = {}
    for tag in re.findall(r"<input [^>]*>", html):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if attributes.get("type") == "checkbox" and " checked" not in tag:
            continue
        if attributes.get("type") != "submit" and "name" in attributes:
            without = "on" if attributes.get("type") == "checkbox" else ""
            found[attributes["name"]] = unescape(attributes.get("value", without))
    for name, text in re.findall(r'<textarea name="(\w+)"[^>]*>\n?([^<]*)</textarea>', html):
        found[name] = unescape(text)
    for name, body in re.findall(r'<select name="(\w+)"[^>]*>(.*?)</select>', html, re.S):
        chosen = re.search(r'<option value="([^"]*)" selected', body)
        found[name] = chosen.group(1) if chosen else ""
    return {
        name: value for name, value in found.items() if name not in ("action", "ids", "back", "csrfmiddlewaretoken")
    }


def save(client, address: str, **changes: str | None):
    """Open the page, change some fields (None: leave it out, as an unticked box), send it."""
    sent = fields(client.get(address).content.decode()) | changes
    return client.post(address, {name: value for name, value in sent.items() if value is not None})


def error_at(response, field: str) -> str:
    assert response.status_code == 200
    return " ".join(response.context["adminform"].form.errors.get(field, []))


# -- changing ----------------------------------------------------------------------------------------------------


def test_new_words_are_one_edit_in_the_persons_name_with_the_reason(signed_in):
    other = MemoryFactory()
    memory = MemoryFactory(observation="Takes 60s", confidence=0.7, updated_at=timezone.now() - timedelta(days=9))
    response = save(signed_in, url(memory), observation="Takes 60 s\nto start", tags="slow, media", reason="Clearer")
    assert response.status_code == 302
    memory.refresh_from_db()
    assert (memory.observation, memory.tags, memory.confidence) == ("Takes 60 s to start", ["slow", "media"], 0.7)
    assert timezone.now() - memory.updated_at < timedelta(minutes=1)
    change = MemoryChange.objects.get()
    assert (change.kind, change.actor, change.reason, change.memory_id) == ("edited", "operator", "Clearer", memory.pk)
    assert change.before["observation"] == "Takes 60s"
    other.refresh_from_db()
    assert other.observation.startswith("Observation")


def test_confidence_alone_is_set_and_brings_an_inactive_memory_back(signed_in):
    memory = MemoryFactory(confidence=0.2, active=False, inactive_reason="decayed")
    save(signed_in, url(memory), confidence="0.6")
    memory.refresh_from_db()
    assert (memory.confidence, memory.active, memory.inactive_reason) == (0.6, True, "")
    change = MemoryChange.objects.get()
    assert (change.kind, change.actor, change.after["confidence"]) == ("confidence_set", "operator", 0.6)


def test_persistence_alone_is_marked(signed_in):
    memory = MemoryFactory(persistent=True)
    save(signed_in, url(memory), persistent=None)
    memory.refresh_from_db()
    assert memory.persistent is False
    assert MemoryChange.objects.get().kind == "persistent_set"


def test_an_expiry_is_taken_as_utc(signed_in):
    memory = MemoryFactory()
    save(signed_in, url(memory), expires_at="2030-05-01T12:30:00")
    memory.refresh_from_db()
    assert memory.expires_at == datetime(2030, 5, 1, 12, 30, tzinfo=UTC)


def test_saving_without_a_change_writes_no_history(signed_in):
    memory = MemoryFactory(tags=["a", "b"], expires_at=timezone.now() + timedelta(days=3), service=None)
    before = Memory.objects.values().get()
    assert save(signed_in, url(memory), reason="just looking").status_code == 302
    assert Memory.objects.values().get() == before
    assert not MemoryChange.objects.exists()


def test_what_a_session_changed_while_the_page_was_open_stays(signed_in):
    """The page was drawn at 0.7; meanwhile a session confirmed the memory. The person only mends the text."""
    memory = MemoryFactory(confidence=0.7)
    sent = fields(signed_in.get(url(memory)).content.decode())
    Memory.objects.update(confidence=0.8)
    signed_in.post(url(memory), sent | {"observation": "Other words"})
    memory.refresh_from_db()
    assert (memory.observation, memory.confidence) == ("Other words", 0.8)
    assert set(MemoryChange.objects.get().after) >= {"observation"}
    assert "confidence" not in MemoryChange.objects.get().after


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("observation", "  \n ", "required"),
        ("observation", "...", "observation is empty"),
        ("observation", "x" * 10_001, "10,001 characters"),
        ("service", "two words", "one word"),
        ("category", "misc", "misc"),
        ("confidence", "1.2", "less than or equal to 1"),
        ("confidence", "-0.1", "greater than or equal to 0"),
        ("confidence", "nan", "Enter a number"),
        ("confidence", "", "required"),
        ("tags", "x" * 51, "50 characters"),
        ("expires_at", "soon", "valid date"),
    ],
)
def test_bad_input_is_refused_at_its_field_and_changes_nothing(signed_in, field, value, says):
    memory = MemoryFactory(confidence=0.7)
    before = Memory.objects.values().get()
    response = save(signed_in, url(memory), **{field: value})
    assert says in error_at(response, field)
    assert Memory.objects.values().get() == before
    assert not MemoryChange.objects.exists()


def test_the_word_general_and_capitals_are_understood(signed_in):
    memory = MemoryFactory(service="jellyfin")
    save(signed_in, url(memory), service="General")
    memory.refresh_from_db()
    assert memory.service is None
    save(signed_in, url(memory), service="CADDY")
    memory.refresh_from_db()
    assert memory.service == "caddy"


def test_bookkeeping_cannot_be_posted(signed_in):
    memory = MemoryFactory(tier=1, merged_count=0)
    save(
        signed_in, url(memory), tier="3", merged_count="9", verdict="hold", uuid="x", active="", observation="New words"
    )
    memory.refresh_from_db()
    assert (memory.tier, memory.merged_count, memory.verdict, memory.active) == (1, 0, "allow", True)


# -- adding ------------------------------------------------------------------------------------------------------


def test_a_persons_memory_is_stored_as_given_with_its_first_change_row(signed_in):
    project = ProjectFactory()
    response = save(
        signed_in,
        ADD,
        taxonomy="ops",
        project=str(project.pk),
        observation="Must be started after WireGuard",
        service="caddy",
        category="dependency",
        confidence="0.9",
        tags="boot",
        persistent="on",
        reason="From the wiring diagram",
    )
    assert response.status_code == 302
    memory = Memory.objects.get()
    assert (memory.observation, memory.service, memory.confidence) == ("Must be started after WireGuard", "caddy", 0.9)
    assert (memory.source, memory.session, memory.tier, memory.persistent) == ("human", None, 0, True)
    assert (memory.project, memory.tags) == (project, ["boot"])
    kinds = list(memory.changes.values_list("kind", "actor"))
    assert kinds == [("created", "operator"), ("edited", "operator")]


def test_an_empty_confidence_takes_the_taxonomys_own(signed_in):
    save(signed_in, ADD, observation="Knows", category="pattern", taxonomy="project")
    assert Memory.objects.get().confidence == 1.0
    save(signed_in, ADD, observation="Knows more", category="timing", taxonomy="ops")
    assert Memory.objects.get(taxonomy="ops").confidence == 0.7


def test_what_is_known_already_is_refused_at_the_text_with_the_number_of_the_known_one(signed_in):
    known = MemoryFactory(observation="Takes 60s", service="caddy", category="timing")
    response = save(signed_in, ADD, observation="takes 60S", service="caddy", category="timing", taxonomy="ops")
    assert f"Memory {known.pk} says exactly this already" in error_at(response, "observation")
    assert Memory.objects.count() == 1
    assert not MemoryChange.objects.exists()
    assert b"takes 60S" in response.content


def test_a_category_of_another_taxonomy_is_refused_at_its_field(signed_in):
    response = save(signed_in, ADD, observation="Knows", category="guideline", taxonomy="ops")
    assert "ops memories have timing" in error_at(response, "category")
    assert not Memory.objects.exists()


# -- the page ----------------------------------------------------------------------------------------------------


def test_the_page_links_to_the_dashboard_for_review_and_history(signed_in):
    memory = MemoryFactory(verdict="hold")
    assert f'<a href="/memories/{memory.pk}" class="viewsitelink">' in signed_in.get(url(memory)).content.decode()
    assert signed_in.get(f"/admin/memories/memory/{memory.pk}/history/").headers["Location"] == f"/memories/{memory.pk}"


def test_what_was_saved_is_said_with_a_link_to_its_page_on_the_dashboard(signed_in):
    for text, further in (("Caddy is slow", {}), ("The NAS sleeps at night", {"_addanother": "1"})):
        response = save(signed_in, ADD, observation=text, category="timing", taxonomy="ops", **further)
        memory = Memory.objects.latest("pk")
        link = f'<a href="/memories/{memory.pk}">Memory {memory.pk}</a>'
        assert [str(message) for message in get_messages(response.wsgi_request)][-1] == f"{link} is added."
    response = save(signed_in, url(memory), observation="Knows better", category="timing")
    assert [str(message) for message in get_messages(response.wsgi_request)][-1] == f"{link} is changed."


def test_the_page_on_the_dashboard_links_to_the_form_for_who_may_edit(client, operator):
    memory, link = MemoryFactory(), "Edit in the admin"
    client.force_login(operator)
    assert link in client.get(f"/memories/{memory.pk}").content.decode()
    client.force_login(person("viewer"))
    assert link not in client.get(f"/memories/{memory.pk}").content.decode()


def test_deleting_on_the_page_leaves_the_history(signed_in):
    memory, other = MemoryFactory(), MemoryFactory()
    address = f"/admin/memories/memory/{memory.pk}/delete/"
    assert b"<li>1 memories</li>" in signed_in.get(address).content
    signed_in.post(address, {"post": "yes"})
    assert list(Memory.objects.all()) == [other]
    change = MemoryChange.objects.get()
    assert (change.kind, change.actor, change.memory_uuid) == ("deleted", "operator", memory.uuid)


def test_staff_who_may_only_look_see_the_page_and_can_change_nothing(client, django_user_model):
    from django.contrib.auth.models import Permission

    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_memory"))
    client.force_login(viewer)
    memory = MemoryFactory(verdict="hold")
    html = client.get(url(memory)).content.decode()
    assert memory.observation in html
    assert "/bulk/" not in html
    assert client.post(url(memory), {"observation": "x"}).status_code == 403
    assert client.post("/admin/memories/memory/bulk/delete", {"ids": str(memory.pk)}).status_code == 403
    assert not MemoryChange.objects.exists()


def test_a_window_is_added_changed_and_refused(signed_in):
    save(signed_in, ADD, observation="The certificate renews", category="timing", surface="First Monday")
    memory = Memory.objects.get()
    assert memory.surface == "first monday"
    save(signed_in, url(memory), surface="")
    memory.refresh_from_db()
    assert memory.surface == ""
    assert "first monday" in error_at(save(signed_in, url(memory), surface="soon"), "surface")
