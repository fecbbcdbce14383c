"""The rules by which lessons are drawn from runs. Pure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.learning import LONGEST, MOST_LESSONS, Run, Step, lessons, plain, step_of

PYTEST = Step("Bash pytest -q", "")
ERROR = "ModuleNotFoundError: No module named 'yaml'"


def failed(pk, error=ERROR, step=PYTEST, **fields) -> Run:
    return Run(pk, True, ((error, step),), **fields)


def test_what_three_failed_runs_had_in_common_is_a_lesson_and_two_are_too_few():
    assert lessons([failed(1), failed(2)]) == []
    found = lessons([failed(1), failed(2), failed(3), Run(4, False)])
    assert {(one.category, one.text, one.runs) for one in found} == {
        ("warning", f"Several runs of this project failed with the error “{ERROR}”.", (1, 2, 3)),
        ("warning", "Several runs of this project failed at the step “Bash pytest -q”.", (1, 2, 3)),
    }


def test_what_completed_runs_had_as_often_is_none():
    runs = [failed(n) for n in (1, 2, 3)] + [Run(n, False, ((ERROR, PYTEST),)) for n in (4, 5, 6)]
    assert lessons(runs) == []


def test_the_same_file_is_one():
    runs = [failed(n, f"error of kind {'abc'[n]}", Step(f"Edit x{n}", "src/core/io.py")) for n in range(3)]
    assert [one.text for one in lessons(runs)] == [
        "Several runs of this project failed while they worked on the file “src/core/io.py”."
    ]


def test_a_retry_that_completed_says_what_it_did_differently():
    before = failed(1, steps=(PYTEST,))
    retry = Run(2, False, steps=(Step("Bash pip install pyyaml"), PYTEST, Step("Read setup.cfg")), retries=1)
    (lesson,) = lessons([before, retry])
    assert lesson.runs == (1, 2)
    assert lesson.category == "learning"
    assert "“Bash pip install pyyaml”, “Read setup.cfg”" in lesson.text
    assert lessons([before, Run(2, False, steps=(PYTEST,), retries=1)]) == []
    assert lessons([before, Run(2, True, steps=retry.steps, retries=1)]) == []


def test_numbers_and_identifiers_do_not_tell_errors_apart():
    one, two = "Error: Exit code 1\ntimeout after 31 s at 0x7f12", "Error: timeout after 4,512 s at 0x9a"
    assert plain(one) == plain(two) == "timeout after * s at *"


def test_a_call_is_its_tool_with_command_or_file():
    assert step_of('Bash: {"command": "pytest -q\\nls", "timeout": 5}') == Step("Bash pytest -q")
    assert step_of('Edit: {"file_path": "src/a.py", "old_string": "x"}') == Step("Edit src/a.py", "src/a.py")
    assert step_of('Edit: {"file_path": "src/a.py", "old_string": "x … cut') == Step("Edit src/a.py", "src/a.py")
    assert step_of("Bash: [1]") == step_of("Bash: null") == step_of("Bash") == Step("Bash")
    assert step_of('Bash: {"command": 5, "path": ["x"]}') == Step("Bash")


@given(st.text(max_size=400))
def test_no_text_of_a_log_opens_a_structure(text):
    shown = plain(text)
    assert len(shown) <= LONGEST
    assert not set(shown) & set('[]{}<>#`"“”|\\\n\r\x1b')
    step = step_of(text)
    assert len(step.name) <= LONGEST
    assert not set(step.name + step.file) & set('[]{}<>#`"“”|\\\n')


STEPS = st.builds(Step, st.sampled_from(["Bash a b", "Read c d", "Edit e f"]), st.sampled_from(["", "src/x.py"]))
ERRORS = st.lists(st.tuples(st.sampled_from(["one error", "two errors"]), st.none() | STEPS), max_size=3).map(tuple)
RUNS = st.lists(
    st.tuples(st.booleans(), ERRORS, st.lists(STEPS, max_size=3).map(tuple), st.none() | st.integers(1, 9)), max_size=12
).map(lambda rows: [Run(pk, *row) for pk, row in enumerate(rows, 1)])


@given(RUNS, st.randoms())
def test_the_order_of_the_runs_does_not_matter_and_a_lesson_has_its_runs(runs, random):
    found = lessons(runs)
    mixed = list(runs)
    random.shuffle(mixed)
    assert {one.text for one in lessons(mixed)} == {one.text for one in found}
    assert len(found) <= MOST_LESSONS
    known = {run.pk: run for run in runs}
    for one in found:
        assert sorted(set(one.runs)) == list(one.runs)
        if one.category == "warning":
            assert len(one.runs) >= 3
            assert all(known[pk].failed for pk in one.runs)
