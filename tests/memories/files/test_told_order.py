"""What an agent is told keeps the order of its file, and what belongs together: twenty files with nested lists."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.tracked_file.document import Document
from claudeops.lib.tracked_file.passages import passages
from memories.files.sync import sync_file
from memories.files.told import told_to
from memories.models import Project
from tests.memories.files.conftest import Repository

GOLDEN = tomllib.loads(Path(__file__).with_name("told_order.toml").read_text(encoding="utf-8"))["file"]


@pytest.mark.processes
def test_twenty_files_are_told_in_their_order_with_their_lead_ins(
    project: Project, repository: Repository, settled: None, subtests
) -> None:
    assert len(GOLDEN) >= 20
    for number, one in enumerate(GOLDEN):
        agent = f"agent{number}"
        repository.save("## Notes\n", agent)
        sync_file(project, agent, create=True)  # a file of an older shape would be written anew
        repository.save(one["text"], agent)
    repository.commit()
    for number, one in enumerate(GOLDEN):
        with subtests.test(one["about"]):
            sync_file(project, f"agent{number}")
            assert f"{told_to(f'agent{number}', project.pk).text}\n" == one["told"]


def test_what_is_left_out_says_with_what(project: Project, repository: Repository, settled: None) -> None:
    repository.save(
        "## Notes\n\nDo these only on staging:\n- Restart the queue\n- The token is in the vault\n- Alone\n"
    )
    sync_file(project, "research", create=True)
    found = told_to("research", project.pk)
    assert found.text == ""
    reasons = {entry["observation"]: entry["reason"] for entry in found.left_out}
    why = "unconfirmed: nobody can tell who said it, and it is about credentials"
    assert reasons["The token is in the vault"] == why
    assert reasons["Restart the queue"] == reasons["Alone"] == f"left out with what stands beside it: {why}"
    assert found.untold == [{"text": "Do these only on staging:", "reason": reasons["Alone"]}]


LINE = [
    "",
    "# T",
    "## S",
    "### U",
    "A lead-in:",
    "more",
    "- a",
    "  - b",
    "    - c",
    "1. d",
    "  e",
    "\t- f",
    "---",
    "* g",
]
LINES = st.lists(st.sampled_from(LINE), max_size=30)


@given(LINES)
def test_each_line_is_in_one_passage_in_the_order_of_the_text(lines: list[str]) -> None:
    found = passages(lines, [""] * len(lines))
    places = [part.at for passage in found for part in passage.parts]
    assert places == sorted(set(places))
    told = " ".join(part.text for passage in found for part in passage.parts).split()
    written = [line for line in lines if line.strip() and not line.startswith("#") and line != "---"]
    marks = {"-", "*", "1."}
    assert told == [word for line in written for word in line.split() if word not in marks]


@given(LINES)
def test_a_list_stands_in_the_passage_of_its_lead_in(lines: list[str]) -> None:
    found = passages(lines, [""] * len(lines))
    for passage in found:
        first, *others = passage.parts
        assert first.depth == 0
        assert all(part.depth for part in others if part.mark) or not first.mark
        assert not (first.mark and any(part.mark and part.depth == 0 for part in others))
    for at, line in enumerate(lines[1:], 1):
        if line == "- a" and lines[at - 1] == "A lead-in:":
            (passage,) = (one for one in found if any(part.at == at for part in one.parts))
            assert "A lead-in:" in " ".join(part.text for part in passage.parts)


@given(st.lists(st.sampled_from([*LINE, "```", "<!-- x", "-->", " g", "  ---", "  # h", "- ", "+ c"]), max_size=30))
def test_the_text_of_an_item_is_what_is_told_of_it(lines: list[str]) -> None:
    document = Document.read("\n".join(lines))
    parts = {part.at: part for passage in document.passages for part in passage.parts}
    for item in document.items:
        part = parts[item.at]
        assert (part.text.split(), part.end) == (item.text.split(), item.end)
        assert item.below >= item.end
