"""An agent's memory file as a document: read, edited and written without touching what a person wrote."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.tracked_file.document import LARGEST
from memories.files.document import MOST_ENTRIES, Document, Edits, new_document, parse
from memories.files.sections import RECENT, sections_for

AT = datetime(2026, 11, 24, 10, 30, tzinfo=UTC)
LIMITS = {"kilobytes": 8, "sections": 10, "items": 15, "line": 120}
STANDARD = sections_for("research")

FILE = """# Research Memory - Shop

<!-- MEMORY LIMITS: 8 KB | 10 sections -->
<!-- Last Updated: 2026-11-01 08:00 UTC | Auto-updated by: claudeops -->

## Project Architecture (Max: 15 items)

The shop is one Django project.

- The importer writes through the queue
- Orders and payments are two apps
  that share one database
  - a nested remark

## Notes of Ada
* Ask before touching the tax tables
+ Second bullet
```
- not an entry
```
<!-- - nor this
- nor this -->
---
1. numbered prose

## recent learnings
- The suite takes 4 minutes
"""


def test_a_file_is_read_as_sections_entries_and_prose() -> None:
    document = parse(FILE.encode())
    assert [section.name for section in document.sections] == [
        "Project Architecture",
        "Notes of Ada",
        "recent learnings",
    ]
    first, second, third = document.sections
    assert [entry.text for entry in first.entries] == [
        "The importer writes through the queue",
        "Orders and payments are two apps that share one database",
    ]
    assert first.prose == ("The shop is one Django project.", "  - a nested remark")
    assert [entry.text for entry in second.entries] == ["Ask before touching the tax tables", "Second bullet"]
    assert second.prose == ("---", "1. numbered prose")
    assert [entry.text for entry in third.entries] == ["The suite takes 4 minutes"]


def test_edits_touch_only_the_lines_of_their_entries() -> None:
    document = parse(FILE.encode())
    _, orders, tax, _, suite = document.entries
    edits = Edits(
        {orders: "Orders and payments share a database", tax: "Ask Ada\nfirst"},
        frozenset({suite}),
        [("project architecture", "Mail goes through the outbox"), (RECENT, "The linter takes 3 s")],
    )
    expected = (
        FILE.replace(
            "- Orders and payments are two apps\n  that share one database\n  - a nested remark\n",
            "- Orders and payments share a database\n  - a nested remark\n- Mail goes through the outbox\n",
        )
        .replace("* Ask before touching the tax tables", "* Ask Ada first")
        .replace("- The suite takes 4 minutes", "- The linter takes 3 s")
    )
    assert document.edited(edits).to_bytes().decode() == expected


def test_a_missing_section_is_put_where_the_order_has_it() -> None:
    document = parse(FILE.encode())
    made = document.edited(Edits(add=[("Common Mistakes to Avoid", "Never ")]), STANDARD.names)
    names = [section.name for section in made.sections]
    assert names == ["Project Architecture", "Notes of Ada", "Common Mistakes to Avoid", "recent learnings"]
    found = made.section("common  mistakes to avoid")
    assert found is not None and [entry.text for entry in found.entries] == ["Never"]
    repaired = document.with_sections(STANDARD.required, STANDARD.names, 15)
    assert set(STANDARD.required) < {section.name for section in repaired.sections}
    assert repaired.with_sections(STANDARD.required, STANDARD.names, 15) == repaired


def test_a_new_file_has_its_sections_and_no_facts() -> None:
    document = parse(new_document("data_engineer", "Shop <b>", STANDARD, LIMITS, AT).to_bytes())
    text = document.to_bytes().decode()
    assert text.startswith("# Data Engineer Memory - Shop b\n")
    assert tuple(section.name for section in document.sections) == STANDARD.names
    assert document.entries == ()
    assert "## Project Architecture (Max: 15 items)\n" in text
    later = document.updated(AT.replace(year=2027), "agent:x --> - injected").to_bytes().decode()
    assert "<!-- Last Updated: 2027-11-24 10:30 UTC | Auto-updated by: agent:x - - injected -->" in later


def test_only_the_line_of_the_update_is_renewed_and_none_is_put_in() -> None:
    document = parse(b"## A\n- one\n")
    assert document.updated(AT, "me") is document


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x" * (LARGEST + 1), "more than 5 MB"),
        ("x".encode("utf-16"), "UTF-16"),
        (b"## A\n- one\x00\n", "NUL"),
        (b"## A\n- caf\xe9\n", "byte 10 is not UTF-8"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    assert reason in parse(data).unreadable


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", ["", "END"])
def test_line_ends_byte_order_mark_and_a_missing_last_line_end_stay(end: str, bom: bytes, last: str) -> None:
    data = bom + f"## A{end}- one{end}- two{end if last else ''}".encode()
    document = parse(data)
    assert document.to_bytes() == data
    made = document.edited(Edits({document.entries[1]: "2"}, frozenset({document.entries[0]}), [("A", "three")]))
    assert made.to_bytes() == bom + f"## A{end}- 2{end}- three{end if last else ''}".encode()


LINES = st.sampled_from(
    [
        *(
            "## A",
            "## B (Max: 15 items)",
            "## a ",
            "- one",
            "- two",
            "* three  ",
            "  more of it",
            "  - nested",
            "prose",
        ),
        *("", " ", "```", "~~~ x", "<!-- c", "-->", "---", "# Title", "### Sub", "\t- tab", "-", "- ", "1. n", "- ü𝄞"),
    ]
)


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=30), st.booleans(), st.data())
def test_an_edited_document_keeps_every_other_line(
    rows: list[tuple[str, str]], ended: bool, data: st.DataObject
) -> None:
    text = "".join(row + end for row, end in rows)
    text = text if ended else text.rstrip("\r\n")
    document = parse(text.encode())
    assert document.to_bytes() == text.encode()
    entries = list(document.entries)
    removed = frozenset(data.draw(st.lists(st.sampled_from(entries), unique=True)) if entries else [])
    replaced = {entry: f"new {number}" for number, entry in enumerate(entries) if entry not in removed and number % 2}
    made = document.edited(Edits(replaced, removed))
    touched = {number for entry in (*removed, *replaced) for number in range(entry.start, entry.end)}
    kept = [row for number, (row, _) in enumerate(document.lines) if number not in touched]
    result = [row for row, _ in made.lines]
    remaining = iter(result)
    assert all(row in remaining for row in kept)  # in their order
    assert len(result) == len(kept) + len(replaced)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    document = parse(data)
    assert document.unreadable or document.to_bytes() == data


def test_an_empty_file_is_a_document() -> None:
    made = Document().edited(Edits(add=[("A", "one")]), ("A",))
    assert made.to_bytes() == b"## A (Max: 15 items)\n- one\n"


@pytest.mark.parametrize("opening", ["```python", "~~~", "<!-- to do", "````"])
def test_a_fence_or_a_comment_without_an_end_hides_no_entry(opening: str) -> None:
    document = parse(f"## A\n- one\n{opening}\n- two\n## B\n```\n- code\n```\n- three\n".encode())
    hides = opening == "```python"  # the next fence closes it
    assert [entry.text for entry in document.entries] == (
        ["one", "code", "three"] if hides else ["one", "two", "three"]
    )


def test_a_heading_names_its_section_in_one_line_without_what_decorates_it() -> None:
    text = f"##  common   MISTAKES ( Max: 3 ) ##\n- a\n## (Max: 15 items)\n## #\n## {'n' * 200}\n## C# (max 2)\n"
    names = [section.name for section in parse(text.encode()).sections]
    assert names == ["common MISTAKES ( Max: 3 )", "(Max: 15 items)", "#", "n" * 120, "C#"]


BLANK, HASH = " " * 300_000, "#" * 300_000


@pytest.mark.parametrize(
    "text",
    [
        f"## {HASH}x",
        f"## a{BLANK}b",
        f"- a\n{BLANK}",
        f"- a\n{BLANK}\n- b",
        "## a" + " (max:" * 50_000,
        "<!--\n" * 50_000,
    ],
)
def test_a_long_line_is_read_in_time_that_grows_with_its_length(text: str) -> None:
    started = time.process_time()
    assert parse(text.encode()).sections is not None
    assert time.process_time() - started < 5  # it took hours


def test_a_file_with_more_entries_than_limits_can_allow_is_not_read() -> None:
    assert parse(b"- a\n" * MOST_ENTRIES).entries
    assert parse(b"- a\n" * (MOST_ENTRIES + 1)).unreadable == "it has more than 10,000 entries"


def test_a_text_that_no_memory_can_hold_is_no_entry() -> None:
    document = parse(f"## A\n- {'x' * 10_001}\n- {'y' * 10_000}\n".encode())
    assert [entry.text[0] for entry in document.entries] == ["y"]


def test_an_entry_with_a_credential_says_so() -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    assert [entry.secret for entry in parse(f"- The key is {secret}\n- plain\n".encode()).entries] == [True, False]
