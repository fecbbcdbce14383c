"""What a person marked as private, on the whole way of a transcript."""

from __future__ import annotations

from django.apps import apps

from memories.models import Fact, Memory
from memories.observe import pipeline
from memories.observe.prepare import prepare
from memories.observe.turns import Turn, TurnKind, without_private
from tests.memories.observe.conftest import FACT, answer, turns

USER, AGENT, CALL, RESULT = TurnKind.USER, TurnKind.AGENT, TurnKind.CALL, TurnKind.RESULT
SAID = "The photos volume <private>The key hangs behind the swordfish of Anna</private> is unmounted before a snapshot."
WRITTEN = "🟢 [gate=discard confidence=0.9 category=jc:operations] A note was written on the host of the photos"


def everything() -> str:
    """All that is in the database, as text."""
    rows = (row for model in apps.get_models() for row in model._base_manager.values())
    return "\n".join(map(str, rows))


def test_it_is_in_no_prompt_and_in_no_row(world):
    given = turns(
        (USER, SAID),
        (CALL, "echo 'The key hangs behind the swordfish' > /srv/note"),
        (RESULT, "Error: key hangs behind the swordfish: no such file"),
        (AGENT, "I wrote a note on the host that the key hangs behind the swordfish of Anna."),
    )
    world.add(given, answer(FACT, WRITTEN))
    assert world.drain() == pipeline.Drained(done=1)
    assert Memory.objects.get(verdict="allow").observation in FACT
    persons, agents = Fact.objects.order_by("number")
    assert (persons.support["by"], persons.excerpt) == (
        "person",
        "The photos volume [private] is unmounted before a snapshot.",
    )
    assert (agents.support["by"], agents.excerpt) == ("nobody", "I wrote a note on the host that [private].")
    assert "swordfish" not in everything()
    assert "swordfish" not in prepare(given).text  # the recorded answer is to this text


def test_no_text_of_a_tool_takes_the_words_of_a_person_away():
    said = "Never restart the billing service between 9 and 11"
    outside = Turn(2, RESULT, f"Error: <private>{said} o'clock</private> is secret", name="WebFetch")
    assert without_private([Turn(1, USER, said), outside]).texts == (said, "Error: [private] is secret")


def test_a_word_alone_and_other_words_are_not_recognised():
    """The limit that the documentation states."""
    texts = without_private([Turn(1, USER, SAID), Turn(2, AGENT, "A swordfish hides it")]).texts
    assert texts[1] == "A swordfish hides it"
