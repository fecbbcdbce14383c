"""MEMORY.md as a document: read and edited without touching what a person wrote."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.tracked_file.merge import merge
from memories.curate.document import (
    MOST,
    SECTIONS,
    Full,
    Misfit,
    Missing,
    add,
    change,
    difference,
    entry_text,
    find,
    parse,
    remove,
)
from memories.taxonomy import KNOWLEDGE

DAY = date(2026, 11, 24)
FILE = """# Memory

A line of Ada's.

## Rules and conventions

- (2026-10-01) Commits are in the imperative
* Reviews are kind
  and short
  - nested

### Of texts

- (2026-10-02) Sentences are short

## Ada's own ##
+ (2026-13-40) Not a day
```
- (2026-01-01) in a fence
```
<!-- - (2026-01-01) in a comment
- (2026-01-01) too -->
- - -

## Operations
"""
texts = st.text(st.sampled_from("ab #-*`<!>()0123456789\r\n\t~\ufeff"), max_size=200)
files = st.lists(
    st.sampled_from(
        [
            "",
            "# Memory",
            "## Operations",
            "## Projects",
            "## Own",
            "- (2026-01-01) a",
            "- b",
            "* c",
            "  d",
            "```",
            "<!--",
            "x -->",
        ]
    ),
    max_size=12,
).map("\n".join)


def entries(text: str) -> list[tuple[str, str]]:
    return [(entry.section, entry.text) for entry in parse(text).entries]


def added(text: str, section: str = "operations", said: str = "New") -> str:
    return add(parse(text), section, said, on=DAY).text


def test_the_sections_are_the_categories_of_knowledge():
    assert tuple(SECTIONS) == KNOWLEDGE.categories


def test_entries_are_read_with_section_date_and_lines():
    found = parse(FILE).entries
    assert [(one.section, str(one.date or ""), one.text, one.end - one.line) for one in found] == [
        ("rules-conventions", "2026-10-01", "Commits are in the imperative", 1),
        ("rules-conventions", "", "Reviews are kind and short", 2),
        ("rules-conventions", "2026-10-02", "Sentences are short", 1),
        ("Ada's own", "", "(2026-13-40) Not a day", 1),
    ]


@given(st.one_of(texts, files, st.text()))
def test_any_text_is_rendered_as_it_was_read(text):
    assert parse(text).text == text


@pytest.mark.parametrize("text", ["", "\ufeff", "- a", "- a\r\n- b\r\n", "a\rb\n\n\n", "\ufeff## Operations\r\n- a"])
def test_byte_order_mark_line_ends_and_a_missing_end_stay(text):
    assert parse(text).text == text


def test_a_byte_order_mark_hides_no_heading_and_no_entry():
    assert entries("\ufeff## Operations\n- a") == [("operations", "a")]
    assert entries("\ufeff- a") == [("", "a")]
    assert change(parse("\ufeff- a\r\n"), "a", "b", on=DAY).text == "\ufeff- (2026-11-24) b\r\n"


def test_a_new_entry_is_the_last_of_its_section_and_stands_before_a_subsection():
    after = added(FILE, "rules-conventions")
    assert after == FILE.replace("  - nested\n", "  - nested\n- (2026-11-24) New\n")


def test_a_section_without_entries_gets_its_first_one():
    assert added(FILE) == FILE + "\n- (2026-11-24) New\n"
    assert added("## Operations\nProse.\n## Projects\n") == (
        "## Operations\nProse.\n\n- (2026-11-24) New\n\n## Projects\n"
    )


def test_a_missing_section_is_made_in_its_order():
    assert added("# Memory\n\n## Projects\n\n- a\n") == (
        "# Memory\n\n## Operations\n\n- (2026-11-24) New\n\n## Projects\n\n- a\n"
    )
    assert added("- a", "projects") == "- a\n\n## Projects\n\n- (2026-11-24) New"


@pytest.mark.parametrize(("before", "mark"), [("", ""), (" \n", ""), ("\ufeff", "\ufeff")])
def test_an_empty_file_gets_a_title(before, mark):
    assert added(before) == f"{mark}# Memory\n\n## Operations\n\n- (2026-11-24) New\n"


def test_line_ends_of_the_file_are_used():
    assert added("## Operations\r\n\r\n- a\r\n") == "## Operations\r\n\r\n- a\r\n- (2026-11-24) New\r\n"


def test_what_is_opened_and_never_closed_hides_no_entry():
    for opening in ("```", "~~~ x", "<!--"):
        assert entries(added(f"## Operations\n- a\n{opening}\n- b\n")) == [
            *(("operations", one) for one in ("a", "b", "New")),
        ]
    assert ("preferences", "New") in entries(added("## Projects\n```\n## Preferences\n", "preferences"))


def test_the_201st_entry_is_refused():
    text = "## Operations\n" + "".join(f"- {n}\n" for n in range(MOST))
    with pytest.raises(Full, match="has 200 entries; at most 200"):
        added(text)
    assert len(parse(added(text.replace("- 7\n", ""))).entries) == MOST


def test_a_change_replaces_the_lines_of_an_entry_and_leaves_its_bullet_and_what_stands_below():
    after = change(parse(FILE), "Reviews are kind and short", "Reviews are short", on=DAY).text
    assert after == FILE.replace("* Reviews are kind\n  and short", "* (2026-11-24) Reviews are short")


def test_of_equal_entries_that_of_the_section_is_changed():
    text = "## Operations\n- a\n## Projects\n- a\n"
    assert remove(parse(text), "a", section="projects").text == "## Operations\n- a\n## Projects\n"
    assert remove(parse(text), "a").text == "## Operations\n## Projects\n- a\n"


def test_a_removal_takes_the_indented_lines_of_the_entry():
    assert remove(parse(FILE), "Reviews are kind and short").text == FILE.replace(
        "* Reviews are kind\n  and short\n  - nested\n", ""
    )


def test_a_missing_entry_is_said():
    with pytest.raises(Missing, match="no entry “b”"):
        remove(parse("- a"), "b")
    with pytest.raises(Missing):
        change(parse("- a"), "b", "c", on=DAY)


def test_no_text_of_an_entry_opens_anything(subtests):
    for hostile in [
        "a\n## Operations\n- (2026-01-01) b",
        "```\nrm -rf /",
        "# Rules",
        "<!-- the rest is hidden",
        "--> and shown again <!--",
        "- (2020-01-01) - nested",
        "a\r\n\u2028\u202e~~~",
        "***",
    ]:
        with subtests.test(str(hostile)):
            before = "## Operations\n\n- a\n\n## Projects\n\n- z\n"
            after = added(before, "operations", hostile)
            assert entries(after) == [("operations", "a"), ("operations", entry_text(hostile)), ("projects", "z")]
            assert len(parse(after).lines) == len(parse(before).lines) + 1
            assert "<!--" not in after and "-->" not in after


def test_a_credential_is_not_written():
    secret = "ghp_" + "a1B2" * 9
    after = added("", said=f"The token is {secret} in CI")
    assert secret not in after
    assert find(parse(f"- The token is {secret} in CI"), entry_text(f"The token is {secret} in CI"))


def test_an_empty_entry_is_refused():
    with pytest.raises(Misfit, match="empty"):
        added("", said="\u200b \n")


@given(files, st.sampled_from(list(SECTIONS)), st.text(min_size=1, max_size=40))
def test_an_addition_adds_one_entry_and_keeps_every_line(text, section, said):
    before = parse(text)
    try:
        after = add(before, section, said, on=DAY)
    except Misfit:
        return
    assert difference(before, after).removed == ()
    assert [(one.section, one.text) for one in difference(before, after).added] == [(section, entry_text(said))]
    left = iter(line for line, _ in after.lines)
    assert all(line in left for line, _ in before.lines)
    again = parse(after.text)
    assert [one.text for one in again.entries] == [one.text for one in after.entries]


@given(files)
def test_removing_what_was_added_leaves_the_entries(text):
    before = parse(text)
    try:
        after = add(before, "operations", "New and only here", on=DAY)
    except Misfit:
        return
    assert entries(remove(after, "New and only here").text) == entries(text)


# A person's edit and a promotion.


def test_edits_of_different_lines_are_both_in():
    merged = merge(parse("- a\n- b\n- c\n"), parse("- A\r\n- b\r\n- c\r\n"), parse("- a\n- b\n- C\n- d\n"))
    assert not merged.clashes
    assert merged.document.text == "- A\r\n- b\r\n- C\n- d\n"


def test_lines_inserted_at_one_place_both_stay_theirs_first():
    merged = merge(parse("- a\n"), parse("- a\n- theirs\n"), parse("- a\n- ours\n"))
    assert (merged.document.text, merged.clashes) == ("- a\n- theirs\n- ours\n", ())


def test_an_edit_of_the_same_line_is_a_clash_and_theirs_stays():
    merged = merge(parse("- a\n- b\n"), parse("- x\n- a by Ada\n- b\n"), parse("- a by us\n- b\n"))
    assert merged.document.text == "- x\n- a by Ada\n- b\n"
    (clash,) = merged.clashes
    assert (clash.base, clash.ours) == (("- a",), ("- a by us",))
    assert "- a by Ada" in clash.theirs


def test_the_same_edit_on_both_sides_is_none():
    merged = merge(parse("- a\n- b\n"), parse("- c\n- b\n"), parse("- c\n- b\n"))
    assert (merged.document.text, merged.clashes) == ("- c\n- b\n", ())


@given(files, files)
def test_a_merge_with_an_unchanged_side_is_the_other(base, edited):
    changed = merge(parse(base), parse(base), parse(edited))
    assert ([text for text, _ in changed.document.lines], changed.clashes) == (
        [text for text, _ in parse(edited).lines],
        (),
    )
    kept = merge(parse(base), parse(edited), parse(base))
    assert (kept.document.text, kept.clashes) == (edited, ())


@given(files, files, files)
def test_a_merge_keeps_each_line_of_theirs_or_had_it_in_the_base(base, theirs, ours):
    merged = merge(parse(base), parse(theirs), parse(ours))
    lines = [text for text, _ in merged.document.lines]
    new = [text for text, _ in parse(theirs).lines if text not in base]
    assert all(text in lines for text in new)


def test_ten_thousand_lines_are_read_edited_and_merged_quickly():
    text = "## Operations\n" + "".join(f"- (2026-01-01) The backup of host {n} takes an hour\n" for n in range(10_000))
    begun = time.perf_counter()
    before = parse(text)
    assert len(before.entries) == 10_000
    after = change(before, "The backup of host 7000 takes an hour", "It takes two", on=DAY)
    merged = merge(before, parse(text + "- theirs\n"), after)
    assert not merged.clashes
    assert time.perf_counter() - begun < 5
