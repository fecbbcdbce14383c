"""The brief: what is asked for is stored, what is wrong is refused with its field named."""

from __future__ import annotations

import pytest

from sessions_app.errors import InvalidBrief
from sessions_app.prompts.brief import Brief, checked, read


def test_what_is_given_is_kept_without_empty_fields():
    given = {"task_id": " SHOP-42 ", "write_scope": ["src/core/**", "", "src/core/**"], "note": "a\nb", "title": None}
    brief = checked(given)
    assert brief == Brief(task_id="SHOP-42", write_scope=("src/core/**",), note="a\nb")
    assert brief.as_record() == {"task_id": "SHOP-42", "write_scope": ["src/core/**"], "note": "a\nb"}
    assert read(brief.as_record()) == brief


def test_a_wrong_field_is_named(subtests):
    for field, value, why in [
        ("write_scope", ["/etc/**"], "not relative"),
        ("write_scope", ["C:/x"], "not relative"),
        ("excluded_paths", ["src/../../x"], "leads out"),
        ("write_scope", ["src\\core"], "backslash"),
        ("write_scope", ["src/***"], "more than two stars"),
        ("write_scope", ["src/**core"], "stands alone"),
        ("read_first", ["docs/*.md"], "is a pattern"),
        ("read_first", ["docs/a\n.md"], "line break"),
        ("write_scope", "src/**", "no list"),
        ("prohibited", [7], "is no text"),
        ("read_first", ["x" * 301], "at most 300"),
        ("read_first", ["x"] * 101, "at most 100"),
        ("title", "a\nb", "line break"),
        ("title", 7, "no text"),
        ("note", "x" * 20_001, "at most 20,000"),
        ("colour", "red", "no such field"),
    ]:
        with subtests.test(str(field)):
            with pytest.raises(InvalidBrief) as caught:
                checked({field: value})
            assert why in str(caught.value)
            assert list(caught.value.fields) == [field]


def test_a_stored_brief_is_read_whatever_it_holds():
    assert read({"title": 7, "write_scope": "x", "read_first": ["a", 7]}) == Brief(read_first=("a",))
