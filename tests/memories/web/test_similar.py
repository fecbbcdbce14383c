"""`/memories/{id}/similar`: the rail's similar memories, and the agent beside the session it is from."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Inactive
from memories.queries.similar import MOST, similar_to
from tests.memories.people import HTMX, signed_in
from tests.support.embedders import WordEmbedder, active_model, embed_all
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

TEXT = "After a restart Jellyfin needs 60 s before the health check answers"
REWORDED = "Jellyfin needs 60 s after a restart before the health check answers"
ELSEWHERE = "After a restart Immich needs 40 s before the health check answers"


def words_of(memory) -> dict[int, str]:
    return {one.memory.pk: one.words for one in similar_to(memory)}


def test_similar_memories_are_linked_with_their_similarity_in_words():
    memory = MemoryFactory(service="jellyfin", observation=TEXT)
    same = MemoryFactory(service="jellyfin", observation=REWORDED)
    other = MemoryFactory(service="immich", observation=ELSEWHERE)
    MemoryFactory(service="restic", observation="The prune holds the lock of the repository at night")
    found = words_of(memory)
    assert found[same.pk] == "says the same"
    assert found[other.pk].startswith("shares ")
    assert set(found) == {same.pk, other.pk}
    html = signed_in("viewer").get(f"/memories/{memory.pk}/similar", headers=HTMX).content.decode()
    assert f'href="/memories/{same.pk}"' in html
    assert "says the same · jellyfin" in html


def test_what_contradicts_it_is_said():
    memory = MemoryFactory(service="jellyfin", observation=TEXT)
    against = MemoryFactory(service="jellyfin", observation=TEXT.replace("60 s", "90 s"))
    assert words_of(memory) == {against.pk: "contradicts it"}


def test_vectors_that_are_stored_find_what_shares_few_words(settings):
    settings.CLAUDEOPS_EMBEDDINGS = "local"
    memory = MemoryFactory(service="jellyfin", observation=TEXT)
    other = MemoryFactory(service="immich", observation=ELSEWHERE)
    embedder = WordEmbedder()
    embed_all(embedder, active_model(embedder))
    assert words_of(memory)[other.pk].endswith("alike in meaning")


def test_no_memory_of_another_project_none_that_is_held_and_not_itself():
    memory = MemoryFactory(observation=TEXT)
    MemoryFactory(observation=TEXT, project=ProjectFactory())
    MemoryFactory(observation=TEXT, verdict="hold")
    MemoryFactory(observation=TEXT, active=False, inactive_reason=Inactive.EXPIRED)
    faded = MemoryFactory(observation=TEXT, active=False, inactive_reason=Inactive.DECAYED)
    assert set(words_of(memory)) == {faded.pk}
    html = signed_in("viewer").get(f"/memories/{memory.pk}/similar").content.decode()
    assert "· inactive" in html


def test_without_any_it_says_so():
    memory = MemoryFactory(observation=TEXT)
    html = signed_in("viewer").get(f"/memories/{memory.pk}/similar").content.decode()
    assert "No other memory is similar." in html


def test_the_queries_are_the_same_for_ten_and_for_twenty_and_a_few_are_shown():
    memory = MemoryFactory(observation=TEXT, service="jellyfin")

    def queries(rows: int) -> int:
        for number in range(rows):
            MemoryFactory(observation=f"{TEXT}, as seen in case {number}", service="jellyfin")
        with CaptureQueriesContext(connection) as captured:
            assert len(similar_to(memory)) == MOST
        return len(captured)

    queries(1 + MOST)
    assert queries(10) == queries(20) < 15


def test_the_page_names_the_agent_beside_the_session_and_loads_the_similar_ones_later():
    session = SessionFactory(agent=AgentFactory(slug="homelab-watch"), ended_at=timezone.now())
    memory = MemoryFactory(session=session, observation=TEXT)
    html = signed_in("viewer").get(f"/memories/{memory.pk}").content.decode()
    assert f'href="/sessions/{session.pk}">session {session.pk}</a>, homelab-watch' in html
    assert f'hx-get="/memories/{memory.pk}/similar"' in html
    assert 'href="/memories/recall?query=After%20a%20restart' in html
