"""An agent of the agent taxonomy has one id, whichever way its memory comes in and whoever asks for it."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from memories import store
from memories.access import visible_memories
from memories.errors import InvalidMemory
from memories.exchange.import_export import import_lines
from memories.lifecycle import verbs
from memories.models import Memory
from memories.models.memory import ANY_PROJECT
from memories.recall import Filters
from memories.recall.filters import within
from sessions_app.mcp.tools import access_for
from tests.memories.people import put, signed_in
from tests.memories.web.test_edit import fields
from tests.support.api_callers import bearer
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
NAMES = ("data_engineer", "Data-Engineer", "data engineer", "plugins/data-engineer-agent", "data_engineer_agent")
NEW = {"observation": "Tests need the queue", "category": "mistake", "taxonomy": "agent"}


def only() -> Memory:
    return Memory.objects.get()


@pytest.mark.parametrize("name", NAMES)
def test_the_api_stores_an_agent_by_its_id(name: str) -> None:
    ProjectFactory(slug="shop")
    answer = bearer("write").post("/api/memories", NEW | {"agent": name, "project": "shop"})
    assert answer.status_code == 201 and only().agent == "data_engineer"


def test_two_names_of_one_agent_are_one_scope() -> None:
    statement = store.Statement("mistake", NEW["observation"], taxonomy="agent")
    for number, name in enumerate(NAMES):
        store.remember(statement, store.Provenance("run", f"agent:{number}", agent=name))
    memory = only()  # the others confirmed it
    assert (memory.agent, memory.changes.count()) == ("data_engineer", len(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_the_form_of_a_memory_takes_the_id(name: str) -> None:
    memory = MemoryFactory(taxonomy="agent", category="mistake", agent="other", service=None)
    person = signed_in("operator")
    put(person, f"/memories/{memory.pk}", fields(person, memory, agent=name))
    assert only().agent == "data_engineer"


def test_a_verb_and_the_command_take_the_id() -> None:
    ProjectFactory(slug="shop")
    words = ["--category", "mistake", "--taxonomy", "agent", "--project", "shop", "--agent", "Data-Engineer"]
    call_command("memory", "add", NEW["observation"], *words, stdout=io.StringIO())
    assert only().agent == "data_engineer"
    verbs.edit(only(), by="ann", agent="Research Agent")
    assert only().agent == "research"
    with pytest.raises(InvalidMemory, match="agent is"):
        verbs.edit(only(), by="ann", agent="///")


def test_an_import_takes_the_id_and_the_same_file_again_changes_nothing() -> None:
    lines = [json.dumps(NEW | {"agent": name, "source": "run"}) for name in NAMES]
    import_lines(lines, by="ann")
    import_lines(lines, by="ann")
    assert only().agent == "data_engineer"


def test_other_taxonomies_keep_the_slug() -> None:
    memory = MemoryFactory(agent="other")
    verbs.edit(memory, by="ann", agent="data-engineer-agent")
    store.remember(store.Statement("timing", "Takes 60 s"), store.Provenance("run", "x", agent="data-engineer-agent"))
    import_lines(
        [json.dumps({"observation": "Takes 90 s", "category": "timing", "agent": "data-engineer-agent"})], by="ann"
    )
    assert set(Memory.objects.values_list("agent", flat=True)) == {"data-engineer-agent"}


def test_an_agent_finds_the_memories_of_its_file_by_its_slug_and_no_other_s() -> None:
    AgentFactory(slug="data-engineer-agent")
    own = MemoryFactory(taxonomy="agent", category="mistake", agent="data_engineer")
    slug = MemoryFactory(agent="data-engineer-agent")
    MemoryFactory(agent="data_engineer")  # of another agent, which has this slug
    MemoryFactory(taxonomy="agent", category="mistake", agent="research")
    wanted = {own.pk, slug.pk}
    found = within(Filters(project=ANY_PROJECT, agent="data-engineer-agent"))
    assert set(found.values_list("pk", flat=True)) == wanted
    seen = visible_memories(access_for(agent="data-engineer-agent"))
    assert set(seen.values_list("pk", flat=True)) == wanted


def test_the_lists_take_an_agent_by_any_of_its_names() -> None:
    own = MemoryFactory(taxonomy="agent", category="mistake", agent="data_engineer")
    MemoryFactory(taxonomy="agent", category="mistake", agent="research")
    caller = bearer("read")
    for name in NAMES:
        rows = caller.get(f"/api/memories?agent={name}").json()["memories"]
        assert [row["id"] for row in rows] == [own.pk]
