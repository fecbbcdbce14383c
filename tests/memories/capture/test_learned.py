"""What an agent says that it learned: blocks, JSON and phrases, and what is another's words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.learned import LONGEST_CONTENT, learned
from memories.taxonomy import AGENT

BLOCK = "# Add To Memory:\nType: pattern\nContent: All services use dependency injection\n#\n"
SAID = [("pattern", "All services use dependency injection")]

ODD = {
    "as it is taught": BLOCK,
    "in the middle of a text": f"I looked at it.\n\n{BLOCK}\nThen I went on.",
    "Windows line ends": BLOCK.replace("\n", "\r\n"),
    "capitals": BLOCK.upper().replace("ALL SERVICES USE DEPENDENCY INJECTION", "All services use dependency injection"),
    "memorize": BLOCK.replace("Add To Memory", "Memorize"),
    "remember": BLOCK.replace("Add To Memory", "Remember"),
    "a deeper heading": BLOCK.replace("# Add", "### Add"),
    "no colon": BLOCK.replace("Memory:", "Memory"),
    "bold heading": BLOCK.replace("# Add To Memory:", "# **Add To Memory:**"),
    "bold fields": BLOCK.replace("Type:", "**Type:**").replace("Content:", "**Content:**"),
    "bold names": BLOCK.replace("Type:", "**Type**:").replace("Content:", "**Content**:"),
    "bullets": BLOCK.replace("Type:", "- Type:").replace("Content:", "- Content:"),
    "content first": "# Add To Memory:\nContent: All services use dependency injection\nType: pattern\n#\n",
    "indented by two": BLOCK.replace("Type", "  Type").replace("Content", "  Content"),
    "no closing": BLOCK.removesuffix("#\n"),
    "no closing, then text": BLOCK.removesuffix("#\n") + "\nI am done.",
    "a second line of content": BLOCK.replace("injection\n", "injection\nand more of it\n"),
    "type in brackets": BLOCK.replace("pattern", "[pattern]"),
    "twice": BLOCK * 2,
    "with blanks": BLOCK.replace("Type: pattern", "Type:   pattern  "),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_the_shapes_of_a_block_that_models_write(answer: str) -> None:
    found = learned(answer)
    assert [(one.category, one.text) for one in found.found] == SAID
    assert not found.refused and not found.replaces


def test_a_blank_line_after_the_heading_belongs_to_the_block() -> None:
    assert [one.text for one in learned(BLOCK.replace("Memory:\n", "Memory:\n\n")).found] == [SAID[0][1]]


def test_a_block_ends_where_the_next_begins() -> None:
    answer = BLOCK.removesuffix("#\n") + "# Remember:\nType: mistake\nContent: The importer drops rows\n#"
    assert [(one.category, one.text) for one in learned(answer).found] == [
        *SAID,
        ("mistake", "The importer drops rows"),
    ]


OTHERS = {
    "a fence": f"```\n{BLOCK}```\n",
    "a fence of Markdown": f"````markdown\n{BLOCK}````\n",
    "a quotation": "".join(f"> {line}\n" for line in BLOCK.splitlines()),
    "an indented log": "".join(f"    {line}\n" for line in BLOCK.splitlines()),
    "HTML": f"<pre>\n{BLOCK}</pre>\n",
    "a list in a quotation": "> - # Add To Memory:\n>   Type: pattern\n>   Content: All services use this\n",
    "a table": "| a | b |\n|---|---|\n| # Add To Memory: | Type: pattern |\n| Content: Something long | x |\n",
    "in a sentence": "The README says: # Add To Memory: Type: pattern Content: Something long #",
    "the form itself": "# Add To Memory:\nType: <type>\nContent: <one sentence of at most 100 characters>\n#\n",
    "an ellipsis": "# Add To Memory:\nType: pattern\nContent: ...\n#\n",
    "JSON in a quotation": '> {"remember": ["Something to remember"]}\n',
    "JSON in a quoted fence": '> ```json\n> {"remember": ["Something to remember"]}\n> ```\n',
    "JSON as a string": '"{\\"remember\\": [\\"Something to remember\\"]}"',
}


@pytest.mark.parametrize("answer", OTHERS.values(), ids=OTHERS)
def test_another_s_words_are_not_read(answer: str) -> None:
    assert learned(answer, phrases=True).found == []


def test_a_block_in_a_fence_is_counted() -> None:
    assert [one.reason for one in learned(f"```\n{BLOCK}```\n").refused] == [
        "1 block in code or a quotation: another's words"
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("short", "shorter than 6 characters"),
        ("x" * 101, "longer than 100 characters"),
        ("", "shorter than 6 characters"),
    ],
)
def test_a_content_of_another_length_is_refused(content: str, reason: str) -> None:
    found = learned(f"# Add To Memory:\nType: pattern\nContent: {content}\n#")
    assert not found.found and [one.reason for one in found.refused] == [reason]


def test_a_block_without_content_is_refused_and_an_unknown_type_is_a_learning() -> None:
    assert [one.reason for one in learned("# Remember:\nType: pattern\n#").refused] == [
        "the block has no line Content: …"
    ]
    assert learned(BLOCK.replace("pattern", "wisdom")).found[0].category == "learning"


@pytest.mark.parametrize(
    "answer",
    [
        'Done.\n\n```json\n{"summary": "x", "remember": ["The suite takes 4 minutes"]}\n```\n',
        'Done. {"remember": ["The suite takes 4 minutes"]}',
        '{"remember": [{"type": "learning", "content": "The suite takes 4 minutes"}]}',
        '```\n{"remember": [{"category": "learning", "text": "The suite takes 4 minutes"}, "short"]}\n```',
    ],
)
def test_remember_in_json_appends(answer: str) -> None:
    found = learned(answer)
    assert [(one.form, one.category, one.text) for one in found.found] == [
        ("remember", "learning", "The suite takes 4 minutes")
    ]
    assert not found.replaces


def test_memories_in_json_replaces_and_null_says_nothing() -> None:
    found = learned('{"MEMORIES": ["The suite takes 4 minutes", 7, {"type": "mistake", "content": "BOM breaks it"}]}')
    assert [(one.category, one.text) for one in found.found] == [
        ("learning", "The suite takes 4 minutes"),
        ("mistake", "BOM breaks it"),
    ]
    assert found.replaces and [one.reason for one in found.refused] == [
        "an entry of MEMORIES is neither a text nor an object"
    ]
    assert learned('{"MEMORIES": null}').replaces is False
    assert [one.reason for one in learned('{"MEMORIES": "all"}').refused] == ["MEMORIES is no list"]


def test_the_legacy_phrases_count_where_a_project_wants_them() -> None:
    answer = (
        "Discovered pattern: Views are thin here\n- **Best practice:** Test signed out too\n"
        "Mistake: Forgot the reverse migration\nArchitecture: The queue is the only writer\n"
    )
    assert learned(answer).found == []
    assert [(one.category, one.text) for one in learned(answer, phrases=True).found] == [
        ("pattern", "Views are thin here"),
        ("guideline", "Test signed out too"),
        ("mistake", "Forgot the reverse migration"),
        ("architecture", "The queue is the only writer"),
    ]


PIECES = st.sampled_from(
    [
        *("# Add To Memory:\n", "Type: pattern\n", "Content: Something that was learned\n", "#\n", "\n", "```\n", "> "),
        *('{"remember": ["Something that was learned"]}', '{"MEMORIES": [', "<pre>", "  ", "\r", "ü𝄞", "\x00", "**"),
    ]
)


@given(st.lists(PIECES | st.text(max_size=20), max_size=30).map("".join), st.booleans())
def test_any_text_is_read_and_what_is_found_is_valid(answer: str, phrases: bool) -> None:
    found = learned(answer, phrases=phrases)
    for one in found.found:
        assert one.category in AGENT.categories
        assert 5 < len(one.text) <= LONGEST_CONTENT and "\n" not in one.text
    assert len({one.text.lower() for one in found.found}) == len(found.found)


@pytest.mark.parametrize(
    "part", ["# Add To Memory:\n", " ", "{", '{"remember": [', "[", "*", "#", "Mistake: ", "Content:" + " " * 50]
)
def test_a_long_answer_takes_no_long_time(part: str) -> None:
    for size in (90_000, 1_000_000):
        start = time.process_time()
        learned(part * (size // len(part)), phrases=True)
        assert time.process_time() - start < 5
