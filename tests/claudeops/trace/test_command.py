"""`manage.py memory trace`."""

import pytest

from tests.support.commands import document, run
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def test_it_says_where_the_way_ended_and_shows_the_steps():
    memory = MemoryFactory(observation="Jellyfin needs a minute", verdict="hold", verdict_reason="it holds a command")
    code, out, _ = run("memory", "trace", "Jellyfin", "needs", "a", "minute")
    assert code == 0
    assert out.startswith(f"It knows, but may not tell: memory {memory.pk} is held for review: it holds a command.")
    assert "Gate        ENDED" in out


def test_its_document_has_the_sentence_and_eight_steps():
    memory = MemoryFactory()
    code, found = document("memory", "trace", memory.pk)
    assert code == 0
    assert found["result"]["end"] == "known"
    assert len(found["result"]["steps"]) == 8
    assert found["next_actions"][0]["command"] == f"manage.py memory show {memory.pk}"


def test_a_session_that_is_not_there_is_refused():
    code, _, err = run("memory", "trace", "anything", "--session", 99)
    assert code == 1
    assert "There is no session 99." in err


def test_an_empty_text_is_refused_with_what_to_say():
    code, _, err = run("memory", "trace", " ")
    assert code == 1
    assert "The text is empty." in err and "manage.py memory trace" in err
