"""Tags against a task: keywords against its words, globs against its paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.injection.tags import Subject, covers, is_glob, matched, matches, overlap, tidied


def test_a_glob_matches_a_path_when_one_covers_the_literal_part_of_the_other(subtests):
    for tag, path in [
        ("src/core/**", "src/core/auth/login.py"),
        ("src/core/**", "src/core/auth/*.py"),
        ("src/core/**", "src/**"),
        ("src/core", "src/core/auth.py"),
        ("./src/core/", "src/core/**"),
        ("*.py", "src/core/auth.py"),
        ("**/auth.py", "src/core/auth.py"),
        ("src/?ore/*", "src/core/auth.py"),
        ("src/app/[id]/*", "src/app/[id]/page.tsx"),
    ]:
        with subtests.test(str(tag)):
            assert matches(tag, Subject(paths=(path,)))
            assert overlap(tidied(path), tidied(tag))


@pytest.mark.parametrize(
    ("tag", "path"),
    [
        ("src/core/**", "src/cor"),
        ("src/core/**", "docs/core/x.md"),
        ("src/*/x.py", "src/a/b/x.py"),
        ("*.py", "src/**"),
        ("**", "**"),
        ("/", "src"),
    ],
)
def test_other_paths_do_not_match(tag, path):
    assert not matches(tag, Subject(paths=(path,)))


@pytest.mark.parametrize("tag", ["auth", "AUTH", "Straße", "error handling", "node.js", "ci-cd"])
def test_a_keyword_matches_whole_words_casefolded(tag):
    assert matches(tag, Subject("Fix AUTH in the STRASSE: error handling of Node.js in ci-cd"))


@pytest.mark.parametrize("tag", ["aut", "authentication", "handling error", "-", "..."])
def test_parts_of_words_and_other_orders_do_not_match(tag):
    assert not matches(tag, Subject("Fix auth: error handling"))


def test_a_keyword_is_not_held_against_paths_nor_a_glob_against_words():
    assert not matches("src", Subject(paths=("src/core/x.py",)))
    assert not matches("src/core", Subject("look at src/core"))


def test_what_is_no_text_is_no_tag():
    assert matched([1, None, ["auth"], {"auth": 1}, "auth"], Subject("auth")) == ("auth",)


def test_a_tag_of_a_thousand_stars_takes_no_time():
    assert not matches("*a" * 1000 + "/b", Subject(paths=("a" * 500,)))


GLOBS = st.text(st.sampled_from("ab/*?.["), min_size=1, max_size=12)


@given(GLOBS, GLOBS)
def test_overlap_has_no_side(one, other):
    assert overlap(tidied(one), tidied(other)) == overlap(tidied(other), tidied(one))


@given(st.text(st.sampled_from("ab/."), min_size=1, max_size=12).map(tidied).filter(bool))
def test_a_path_covers_itself_and_what_is_below_it(path):
    assert covers(path, path)
    assert covers(path, f"{path}/below")
    assert is_glob(path) == ("/" in path)
