"""The three sides of an agent's file: what one side changed goes to the other, what both changed is a conflict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.files.document import Document, Edits, parse
from memories.files.merge import Base, Known, Plan, plan
from memories.files.sections import RECENT, sections_for
from memories.models.agent_file import ConflictKind

SECTIONS = sections_for("qa")
MISTAKES, STRATEGY = "Common Mistakes to Avoid", "Effective Strategies"
BASE = [
    Base(1, MISTAKES, "The importer drops rows after a byte order mark"),
    Base(2, STRATEGY, "Read the failing test before the code"),
    Base(3, RECENT, "The suite takes 4 minutes"),
]
KNOWN = {
    1: Known(BASE[0].text, "mistake", True),
    2: Known(BASE[1].text, "strategy", True),
    3: Known(BASE[2].text, "learning", True),
}


def file_of(base: Sequence[Base]) -> Document:
    return Document().edited(Edits(add=[(one.section, one.text) for one in base]), SECTIONS.names)


def changed(document: Document, old: str, new: str) -> Document:
    text = document.to_bytes().decode()
    assert old in text
    return parse(text.replace(old, new).encode())


def settled(made: Plan) -> bool:
    return not (made.by_people or made.edits or made.conflicts or made.gone)


def test_nothing_has_changed() -> None:
    made = plan(BASE, file_of(BASE), KNOWN, SECTIONS)
    assert settled(made)
    assert [row.memory_id for row in made.placed] == [2, 1, 3]  # the order of the file


def test_a_changed_line_changes_its_memory() -> None:
    made = plan(BASE, changed(file_of(BASE), "4 minutes", "5 minutes"), KNOWN, SECTIONS)
    assert [(one.memory_id, one.text, one.category) for one in made.changed] == [(3, "The suite takes 5 minutes", None)]
    assert not made.edits and not made.conflicts


def test_a_changed_memory_changes_its_line() -> None:
    known = KNOWN | {3: replace(KNOWN[3], text="The suite takes 6 minutes")}
    document = file_of(BASE)
    made = plan(BASE, document, known, SECTIONS)
    assert not made.by_people
    assert document.edited(made.edits).to_bytes() == changed(document, "4 minutes", "6 minutes").to_bytes()


def test_both_changed_is_a_conflict_and_the_file_keeps_its_line() -> None:
    known = KNOWN | {3: replace(KNOWN[3], text="The suite takes 6 minutes")}
    made = plan(BASE, changed(file_of(BASE), "4 minutes", "5 minutes"), known, SECTIONS)
    (conflict,) = made.conflicts
    assert (conflict.kind, conflict.base_text, conflict.file_text, conflict.other_text) == (
        ConflictKind.EDITED,
        "The suite takes 4 minutes",
        "The suite takes 5 minutes",
        "The suite takes 6 minutes",
    )
    assert not made.edits and not made.changed
    assert next(row.text for row in made.placed if row.memory_id == 3) == BASE[2].text


def test_both_changed_to_the_same_text_is_none() -> None:
    known = KNOWN | {3: replace(KNOWN[3], text="The suite takes 5 minutes")}
    made = plan(BASE, changed(file_of(BASE), "4 minutes", "5 minutes"), known, SECTIONS)
    assert settled(made)


def test_a_removed_line_deactivates_its_memory_and_a_deactivated_one_removes_its_line() -> None:
    document = changed(file_of(BASE), f"- {BASE[0].text}\n", "")
    made = plan(BASE, document, KNOWN | {2: replace(KNOWN[2], active=False)}, SECTIONS)
    assert made.removed == [1]
    assert document.edited(made.edits).to_bytes() == changed(document, f"- {BASE[1].text}\n", "").to_bytes()


@pytest.mark.parametrize(
    ("file_text", "known", "kind"),
    [
        ("The suite takes 5 minutes", Known(BASE[2].text, "learning", False), ConflictKind.REMOVED_HERE),
        ("", Known("The suite takes 6 minutes", "learning", True), ConflictKind.REMOVED_IN_FILE),
    ],
)
def test_removed_on_one_side_and_changed_on_the_other_is_a_conflict(
    file_text: str, known: Known, kind: ConflictKind
) -> None:
    line = f"- {BASE[2].text}\n"
    document = changed(file_of(BASE), line, f"- {file_text}\n" if file_text else "")
    made = plan(BASE, document, KNOWN | {3: known}, SECTIONS)
    assert [one.kind for one in made.conflicts] == [kind]
    assert not made.edits and not made.by_people


def test_a_line_that_moves_changes_the_type_of_its_memory() -> None:
    line = f"- {BASE[2].text}\n"
    document = changed(changed(file_of(BASE), line, ""), f"- {BASE[0].text}\n", f"- {BASE[0].text}\n{line}")
    made = plan(BASE, document, KNOWN, SECTIONS)
    assert [(one.memory_id, one.text, one.category) for one in made.changed] == [(3, None, "mistake")]


def test_a_memory_whose_type_changes_moves_its_line() -> None:
    document = file_of(BASE)
    made = plan(BASE, document, KNOWN | {3: replace(KNOWN[3], category="mistake")}, SECTIONS)
    after = document.edited(made.edits, SECTIONS.names)
    section = after.section(MISTAKES)
    assert section is not None and [entry.text for entry in section.entries] == [BASE[0].text, BASE[2].text]


def test_a_line_in_a_section_of_a_person_stays_there() -> None:
    base = [Base(3, "Notes of Ada", BASE[2].text)]
    assert settled(plan(base, file_of(base), KNOWN, SECTIONS))


def test_a_new_line_is_added_and_a_repeated_one_is_not() -> None:
    document = changed(
        file_of(BASE), f"- {BASE[2].text}\n", f"- {BASE[2].text}\n- {BASE[2].text}\n- The linter is slow\n"
    )
    made = plan(BASE, document, KNOWN, SECTIONS)
    assert [entry.text for entry in made.added] == ["The linter is slow"]


def test_a_line_of_a_memory_that_had_left_the_file_is_that_memory() -> None:
    document = changed(file_of(BASE), f"- {BASE[0].text}\n", f"- {BASE[0].text}\n- Old news about the importer\n")
    made = plan(
        BASE,
        document,
        KNOWN | {9: Known("Old news about the importer", "context", True)},
        SECTIONS,
        {"Old news about the importer": 9},
    )
    assert list(made.returned) == [9] and not made.added
    assert [(one.memory_id, one.category) for one in made.changed] == [(9, "mistake")]


def test_a_deleted_memory_takes_its_line_and_an_edited_line_becomes_a_new_memory() -> None:
    document = changed(file_of(BASE), "4 minutes", "5 minutes")
    made = plan(BASE, document, {2: KNOWN[2]}, SECTIONS)
    assert [entry.text for entry in made.remove] == [BASE[0].text]
    assert [entry.text for entry in made.added] == ["The suite takes 5 minutes"]


TEXTS = st.sampled_from(["alpha beta gamma", "alpha beta delta", "one two", "three four five", "six", "SIX"])
PLACES = st.sampled_from([MISTAKES, STRATEGY, RECENT, "Notes of Ada"])


@given(st.data())
def test_whatever_both_sides_did_nothing_is_lost_and_a_second_comparison_is_empty(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.tuples(PLACES, TEXTS), unique=True, max_size=6))
    base = [Base(number, section, text) for number, (section, text) in enumerate(lines)]
    categories = {number: SECTIONS.type_of(section) for number, (section, _) in enumerate(lines)}
    known = {
        number: Known(
            data.draw(st.sampled_from([text, text, f"{text} now"])), categories[number], data.draw(st.booleans())
        )
        for number, (_, text) in enumerate(lines)
        if data.draw(st.sampled_from([True, True, True, False]))
    }
    written = data.draw(
        st.lists(st.tuples(PLACES, TEXTS | st.sampled_from([f"{text} edited" for _, text in lines] or ["x y"])))
    )
    document = Document().edited(Edits(add=written), [*SECTIONS.names])
    made = plan(base, document, known, SECTIONS)
    again = plan(base, document, known, SECTIONS)
    assert made == again

    # Every line of the base has one fate, and every line of the file is known, new or a repetition.
    placed = {row.memory_id for row in made.placed}
    assert placed | set(made.gone) == {one.memory_id for one in base} and not placed & set(made.gone)
    conflicts = {one.memory_id for one in made.conflicts}
    texts = {entry.text for entry in document.entries}
    after = document.edited(made.edits, SECTIONS.names)
    lost = texts - {entry.text for entry in after.entries}
    assert lost <= {entry.text for entry in (*made.remove, *made.replace)}

    # Both sides carry the plan out; then nothing is left to do but the conflicts.
    known_after = dict(known)
    for one in made.changed:
        was = known_after[one.memory_id]
        known_after[one.memory_id] = Known(one.text or was.text, one.category or was.category, True)
    for number in made.removed:
        known_after[number] = replace(known_after[number], active=False)
    base_after = [Base(row.memory_id, row.section, row.text) for row in made.placed]
    for number, entry in enumerate(made.added, start=100):
        known_after[number] = Known(entry.text, SECTIONS.type_of(entry.section), True)
        base_after.append(Base(number, entry.section, entry.text))
    last = plan(base_after, after, known_after, SECTIONS)
    assert not last.edits and not last.by_people and not last.gone
    assert {one.memory_id for one in last.conflicts} == conflicts


def test_a_file_whose_lines_all_changed_is_compared_in_time() -> None:
    base = [Base(number, RECENT, f"The suite {number} takes {number} minutes " + "x" * 900) for number in range(300)]
    known = {one.memory_id: Known(one.text, "learning", True) for one in base}
    document = file_of([replace(one, text=one.text.replace("suite", "linter")) for one in base])
    started = time.process_time()
    made = plan(base, document, known, SECTIONS)
    assert time.process_time() - started < 5
    assert len(made.removed) == len(made.added) == 300  # more than limits allow: removed and added, nothing is lost


@pytest.mark.parametrize("again", ["The suite takes 4 minutes", "the SUITE takes 4 minutes"])
@pytest.mark.parametrize("section", [RECENT, "Notes of Ada"])
def test_a_line_that_says_the_same_in_a_section_of_the_same_type_is_no_new_memory(again: str, section: str) -> None:
    document = Document().edited(Edits(add=[*((one.section, one.text) for one in BASE), (section, again)]))
    made = plan(BASE, document, KNOWN, SECTIONS)
    assert settled(made)
    gone = plan(BASE, document, KNOWN | {3: replace(KNOWN[3], active=False)}, SECTIONS)
    assert {entry.text for entry in gone.remove} == {BASE[2].text, again}  # or it came back as a new one


def test_a_line_that_changes_its_case_changes_its_memory() -> None:
    document = changed(file_of(BASE), "The suite takes 4 minutes", "THE SUITE TAKES 4 MINUTES")
    assert [one.text for one in plan(BASE, document, KNOWN, SECTIONS).changed] == ["THE SUITE TAKES 4 MINUTES"]
    known = KNOWN | {9: Known("the LINTER is slow", "learning", True)}
    document = file_of([*BASE, Base(9, RECENT, "The linter is slow")])
    made = plan(BASE, document, known, SECTIONS, {"the LINTER is slow": 9})
    assert list(made.returned) == [9]
    assert [(one.memory_id, one.text) for one in made.changed] == [(9, "The linter is slow")]


def test_a_line_with_a_credential_is_never_written_over_with_the_masked_text() -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    document = parse(f"## {RECENT}\n- The key is {secret}\n".encode())
    base = [Base(3, RECENT, document.entries[0].text)]
    assert secret not in base[0].text
    newer = Known(f"{base[0].text}, of the deploy user", "learning", True)
    made = plan(base, document, {3: newer}, SECTIONS)
    assert not made.edits and [one.kind for one in made.conflicts] == [ConflictKind.EDITED]
    moved = plan(base, document, {3: Known(base[0].text, "mistake", True)}, SECTIONS)
    assert settled(moved), "a line that moves would be written anew"
    gone = plan(base, document, {3: Known(base[0].text, "learning", False)}, SECTIONS)
    assert list(gone.remove) == list(document.entries)


def test_a_deleted_memory_takes_no_other_line_than_its_own() -> None:
    base = [Base(-1, MISTAKES, "The suite takes 9 minutes"), Base(3, RECENT, "The suite takes 4 minutes")]
    document = file_of([Base(3, RECENT, "The suite takes 9 minutes")])
    made = plan(base, document, {3: KNOWN[3]}, SECTIONS)
    assert [(one.memory_id, one.text) for one in made.changed] == [(3, "The suite takes 9 minutes")]
    assert made.gone == [-1] and not made.added
