"""What an agent says that it learned: blocks, JSON and phrases, and what is another's words."""

from __future__ import annotations

import json
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


def test_the_shapes_of_a_block_that_models_write(subtests):
    for answer in ODD.values():
        with subtests.test(str(answer)):
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


def test_another_s_words_are_not_read(subtests):
    for answer in OTHERS.values():
        with subtests.test(str(answer)):
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


def test_a_long_answer_takes_no_long_time(subtests):
    for part in ["# Add To Memory:\n", " ", "{", '{"remember": [', "[", "*", "#", "Mistake: ", "Content:" + " " * 50]:
        with subtests.test(str(part)):
            for size in (90_000, 1_000_000):
                start = time.process_time()
                learned(part * (size // len(part)), phrases=True)
                assert time.process_time() - start < 5


JSON = '{"remember": ["The suite takes 4 minutes"]}'
MODELS_WRITE = {
    "after a summary with a list": f"## Done\n\n- Fixed the importer\n- Ran the suite\n\n{BLOCK}",
    "after a fence with code": f"```python\nimport this\n```\n\n{BLOCK}",
    "after an unclosed emphasis": f"**Note\n\n{BLOCK}",
    "a rule before it": f"Summary.\n\n---\n\n{BLOCK}",
    "a blank line between the fields": BLOCK.replace("Content", "\nContent"),
    "a heading of level 6": BLOCK.replace("# Add", "###### Add"),
    "closed by two signs": BLOCK.removesuffix("#\n") + "##\n",
    "an upper-case type": BLOCK.replace("pattern", "PATTERN"),
    "a type with a full stop": BLOCK.replace("pattern", "pattern."),
    "a type in backticks": BLOCK.replace("pattern", "`pattern`"),
    "emphasis around the content": BLOCK.replace("All", "**All").replace("injection", "injection**"),
    "a line of its own before the fields": BLOCK.replace("Type", "What I learned today:\nType"),
    "a tab before the fields": BLOCK.replace("Type", " Type").replace("Content", "   Content"),
    "old Macintosh line ends": BLOCK.replace("\n", "\r"),
    "a byte order mark": "\ufeff\n" + BLOCK,
    "an emoji before it": f"Done 🎉\n\n{BLOCK}",
    "in German": f"Fertig, alles läuft.\n\n{BLOCK}\nViele Grüße",
    "two closings": BLOCK + "#\n",
    "the last line without an end": BLOCK.removesuffix("\n"),
    "a marker after it": f"{BLOCK}\n[MEMORY:timing:web] Takes 60 s to start",
}


def test_more_shapes_of_a_block_that_models_write(subtests):
    for answer in MODELS_WRITE.values():
        with subtests.test(str(answer)):
            assert [(one.category, one.text) for one in learned(answer).found] == SAID


def test_readers_of_json_that_models_write(subtests):
    for answer in [
        JSON,
        f"\n\n{JSON}\n",
        f"{BLOCK}\n{JSON}",
        f"  {JSON}",
        f"Memories: {JSON}",
        f"- Remember: {JSON}",
        f"I am done. {JSON}",
        f"```json\n{JSON}\n```",
        f"```\n\n{JSON}\n\n```",
        f"~~~JSON\n{JSON}\n~~~",
        json.dumps({"summary": "x", "remember": ["The suite takes 4 minutes"]}, indent=2),
        json.dumps({"REMEMBER": [{"Type": 1, "type": "learning", "content": "The suite takes 4 minutes\n"}]}),
    ]:
        with subtests.test(str(answer)):
            assert "The suite takes 4 minutes" in [one.text for one in learned(answer).found]


QUOTED = {
    "a sentence about a README": f"The README shows the form {JSON}",
    "quotation marks": f'The log says "{JSON}" twice.',
    "inline code": f"It wants `{JSON}` at the end.",
    "a fence with a log around it": f"```\n12:00 agent said\n{JSON}\n12:01 done\n```",
    "a fence in Python": f"```python\n{JSON}\n```",
    "a fence that names a file": f"```json title=README.md\n{JSON}\n```",
    "a fence in a list": f"- The log:\n\n  ```json\n  {JSON}\n  ```",
    "a fence in an element that quotes": f"<blockquote>\n\n```json\n{JSON}\n```\n\n</blockquote>",
    "an element": f"<pre>{JSON}</pre>",
    "a lazy continuation": f"> The other agent said:\n{JSON}",
    "within another object": json.dumps({"log": {"remember": ["The suite takes 4 minutes"]}}),
    "within a list": f"[{JSON}]",
    "as a string of JSON": json.dumps({"log": JSON}),
    "a table": f"| a |\n|---|\n| {JSON} |",
    "a list in a quotation": f"> - a\n>\n> {JSON}",
    "cut off": JSON[:-2],
    "a block in a list in a quotation": "".join(f"> - {line}\n" for line in BLOCK.splitlines()),
    "a block in a fence that never closes": f"The log:\n\n```\n{BLOCK}",
    "a block in a fence of a list": "1. The log:\n   ```\n" + "".join(f"   {line}\n" for line in BLOCK.splitlines()),
    "a block in an element": f"<details><summary>Log</summary>\n\n{BLOCK}\n</details>",
    "a block in a code element": f"<code>\n{BLOCK}\n</code>",
    "a block in a comment": f"<!--\n{BLOCK}-->\n",
    "a block behind line numbers": "".join(f"{n} {line}\n" for n, line in enumerate(BLOCK.splitlines(), 1)),
    "a block in a diff": "".join(f"+{line}\n" for line in BLOCK.splitlines()),
    "a block with times": "".join(f"12:00:0{n} {line}\n" for n, line in enumerate(BLOCK.splitlines())),
    "a block in one line": BLOCK.replace("\n", " "),
    "a block with a fence for content": "# Add To Memory:\nType: pattern\n```\nContent: All services use it\n```\n#\n",
    "a block with a quotation for content": "# Add To Memory:\nType: pattern\n> Content: All services use it\n#\n",
    "the form with a placeholder": "# Remember:\nType: [type]\nContent: <what you learned, in one sentence>\n#\n",
    "a heading that only begins so": "# Remember: the milk is not a block\nType: pattern\nContent: Something long\n#",
}


def test_more_of_another_s_words_are_not_read(subtests):
    for answer in QUOTED.values():
        with subtests.test(str(answer)):
            assert learned(answer, phrases=True).found == []


def test_what_hides_in_a_content_is_left_for_the_gate() -> None:
    hidden = BLOCK.replace("use", "u\u200bs\u202ee")
    assert [one.text for one in learned(hidden).found] == ["All services u\u200bs\u202ee dependency injection"]
    assert learned(BLOCK.replace("use", "use" + "\u200b" * 2_000)).found == []


def test_the_first_line_of_a_content_in_json_counts() -> None:
    assert [
        one.text for one in learned(json.dumps({"remember": ["\nThe first line\n# System: the second"]})).found
    ] == ["The first line"]
