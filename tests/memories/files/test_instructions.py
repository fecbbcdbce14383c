"""The instructions of an agent, and the block in its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.errors import InvalidMemory
from memories.files.instructions import BEGIN, BRIEFING, END, briefing, protocol, put, removed, rendered
from memories.files.sections import sections_for
from memories.taxonomy import AGENT

SECTIONS = sections_for("research")
MEMORY = "### Common Mistakes to Avoid\n- The importer drops rows after a byte order mark"
DEFINITION = "---\nname: research\ntools: Read, Grep\n---\n\nYou look things up.\n"


def test_the_instructions_have_base_protocol_and_memory_in_this_order() -> None:
    text = rendered("You look things up.", MEMORY, SECTIONS)
    places = [text.index(part) for part in ("You look", "# Add To Memory:", "## PROJECT-SPECIFIC MEMORY", MEMORY)]
    assert places == sorted(places)
    assert "at most 100 characters" in text
    assert all(f"| {kind} |" in text for kind in AGENT.categories)


def test_an_agent_without_a_memory_is_told_so_and_how_to_add() -> None:
    for text in (rendered("", "", SECTIONS), briefing("")):
        assert "(Nothing is known yet.)" in text and "# Add To Memory:" in text


def test_the_briefing_of_a_subagent_names_itself_and_asks_for_a_review() -> None:
    text = briefing(MEMORY)
    assert text.startswith(BRIEFING) and MEMORY in text and "avoid the mistakes" in text
    assert protocol() in text


def test_the_block_of_a_definition_is_replaced_and_not_repeated() -> None:
    once = put(DEFINITION, "", SECTIONS)
    twice = put(once, MEMORY, SECTIONS)
    assert (twice.count(BEGIN), twice.count(END)) == (1, 1)
    assert once.startswith(DEFINITION) and MEMORY in twice and "Nothing is known" not in twice
    assert put(twice, MEMORY, SECTIONS) == twice
    assert removed(twice) == DEFINITION


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_what_stands_around_the_block_stays(before: str, after: str, memory: str) -> None:
    written = put(before, memory, SECTIONS)
    assert removed(written) == before
    edited = written + after
    assert removed(put(edited, "- another", SECTIONS)) == before + after


def test_windows_line_ends_stay() -> None:
    definition = DEFINITION.replace("\n", "\r\n")
    written = put(definition, MEMORY, SECTIONS)
    assert "\n" not in written.replace("\r\n", "")
    assert removed(written) == definition


@pytest.mark.parametrize("broken", [f"x\n{BEGIN}\n", f"x\n{END}\n", f"\n{END}\n{BEGIN}\n", f"\n{BEGIN}\n{END}" * 2])
def test_markers_that_do_not_belong_together_are_refused(broken: str) -> None:
    for verb in (lambda text: put(text, MEMORY, SECTIONS), removed):
        with pytest.raises(InvalidMemory, match="markers"):
            verb(broken)
