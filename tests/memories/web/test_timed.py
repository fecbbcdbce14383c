"""`/memories/timed`, the page of a memory with a window of time, and the forms that set it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.errors import InvalidMemory
from memories.lifecycle import verbs
from memories.lifecycle.undo import restore
from memories.models import Memory, MemoryChange, Verdict
from tests.memories.people import signed_in
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

PAGE = "/memories/timed"


@pytest.fixture
def operators(db):
    return signed_in("operator", "ann")


def day(ahead: int) -> str:
    return f"{timezone.now().date() + timedelta(days=ahead)}"


def test_the_page_lists_what_is_told_now_and_next_in_the_order_of_time(operators):
    MemoryFactory(observation="The <b>move</b>", surface=day(9))
    MemoryFactory(observation="The audit", surface=day(0))
    MemoryFactory(observation="Much later", surface=day(40))
    MemoryFactory(observation="Held back", surface=day(1), verdict=Verdict.HOLD)
    html = operators.get(PAGE).content.decode()
    assert html.index("The audit") < html.index("The &lt;b&gt;move&lt;/b&gt;")
    assert "<strong>told now</strong>" in html
    assert "Much later" not in html
    assert "Held back" not in html


def test_without_windows_the_page_says_how_to_set_one(operators):
    html = operators.get(PAGE).content.decode()
    assert "No memory has a window" in html
    assert "first monday" in html


def test_the_page_needs_the_right_to_see_memories(client, stranger):
    client.force_login(stranger)
    assert client.get(PAGE).status_code == 403


def test_twenty_rows_need_as_many_queries_as_ten(operators):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            operators.get(PAGE)
        return len(captured)

    MemoryFactory.create_batch(10, surface=day(1))
    few = queries()
    MemoryFactory.create_batch(10, surface=day(1))
    assert queries() == few


def test_a_window_is_set_in_the_form_of_the_page_and_taken_back(operators):
    memory = MemoryFactory()
    response = operators.post(
        f"/memories/{memory.pk}", {"_method": "PUT", "surface": "First Monday", "initial-surface": ""}
    )
    memory.refresh_from_db()
    assert (response.status_code, memory.surface) == (302, "first monday")
    html = operators.get(f"/memories/{memory.pk}").content.decode()
    assert "Told next" in html or "Told until" in html
    assert "changed the window from none to first monday" in html
    change = MemoryChange.objects.filter(memory=memory).latest("pk")
    restore(memory, change, by="ann")
    memory.refresh_from_db()
    assert memory.surface == ""


def test_a_window_that_cannot_be_read_is_said_beside_its_field(operators):
    memory = MemoryFactory()
    response = operators.post(f"/memories/{memory.pk}", {"_method": "PUT", "surface": "soon", "initial-surface": ""})
    memory.refresh_from_db()
    assert (response.status_code, memory.surface) == (422, "")
    assert "Allowed are 2026-12-01" in response.content.decode()


def test_a_memory_is_added_with_its_window(operators):
    new = {"observation": "The certificate renews", "category": "timing", "surface": "first monday"}
    assert operators.post("/memories", new).status_code == 302
    assert Memory.objects.get().surface == "first monday"
    refused = operators.post("/memories", new | {"observation": "Another", "surface": "soon"})
    assert refused.status_code == 422
    assert "Allowed are 2026-12-01" in refused.content.decode()


def test_a_memory_of_an_agents_file_takes_no_window():
    memory = MemoryFactory(taxonomy="agent", category="pattern", agent="watcher")
    with pytest.raises(InvalidMemory, match="always in it"):
        verbs.edit(memory, by="ann", surface="mon")
