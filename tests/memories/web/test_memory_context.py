"""`/memories/{id}`: the narratives of the observed sessions that state a memory, and how far it is trusted."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.models import FactOutcome
from tests.memories.people import signed_in
from tests.support.factories import FactFactory, MemoryFactory, SegmentFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(db):
    return signed_in("viewer")


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def section(html: str, name: str) -> str:
    return html.split(f'id="{name}"')[1].split("</section>")[0]


def test_the_narrative_of_its_segment_is_the_context_of_a_memory(viewer):
    memory = MemoryFactory(observation="The backup runs on beta")
    segment = SegmentFactory(narrative="The backup was moved. <b>Alpha</b> was full.")
    fact = FactFactory(
        segment=segment,
        memory=memory,
        text="Backups run on beta",
        outcome=FactOutcome.MERGED,
        turn=7,
        excerpt="On beta!",
    )
    html = viewer.get(f"/memories/{memory.pk}").content.decode()
    shown = section(html, "context")
    text = words_of(shown)
    assert "The backup was moved. <b>Alpha</b> was full." in text
    assert f"{fact.source} · merged into a known memory: “Backups run on beta”" in text
    assert "Source, turn 7 of" in text
    assert "On beta!" in text
    assert f'href="/learning-log/{segment.transcript_id}?part=1#fact-{fact.pk}"' in shown
    assert "<b>Alpha" not in html


def test_a_memory_that_no_observed_session_states_has_no_context(viewer):
    assert 'id="context"' not in viewer.get(f"/memories/{MemoryFactory().pk}").content.decode()


def test_at_most_five_segments_are_its_context_with_one_query_for_all(viewer):
    few, many = MemoryFactory(), MemoryFactory()
    FactFactory(memory=few)
    FactFactory.create_batch(7, memory=many)
    viewer.get(f"/memories/{few.pk}")
    with CaptureQueriesContext(connection) as first:
        viewer.get(f"/memories/{few.pk}")
    with CaptureQueriesContext(connection) as second:
        html = viewer.get(f"/memories/{many.pk}").content.decode()
    assert len(first) == len(second)
    assert section(html, "context").count("context-told") == 5


@pytest.mark.parametrize(
    ("given", "words", "bars"),
    [
        ({"source": "human"}, "an operator", 4),
        ({"source": "run"}, "a session of its own", 3),
        ({"source": "import"}, "an import", 2),
        ({"source": "run", "exposure": "outside"}, "outside text", 1),
    ],
)
def test_how_far_it_is_trusted_is_said_in_words_and_in_bars(viewer, given, words, bars):
    memory = MemoryFactory(**given)
    shown = section(viewer.get(f"/memories/{memory.pk}").content.decode(), "facts").split("Trusted as")[1]
    shown = shown.split("</dd>")[0]
    assert words_of(shown) == words
    assert shown.count('class="trust-on"') == bars


def test_the_list_shows_the_trust_when_its_column_is_chosen_and_filters_by_it(viewer):
    MemoryFactory(observation="From a log", source="run", exposure="outside")
    MemoryFactory(observation="From a person", source="human")
    viewer.post("/lists/memories/columns", {"column": ["trust"], "size": "50", "back": "/memories"})
    html = viewer.get("/memories?q=trust:external", follow=True).content.decode()
    assert "From a log" in html
    assert "From a person" not in html
    assert "outside text" in html.split("<tbody")[1].split("</tbody>")[0]
