"""What a preference may hold."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.preferences import models


def test_a_zone_is_an_iana_name_and_no_file():
    assert str(models.zone("Europe/Berlin")) == "Europe/Berlin"
    assert str(models.zone("UTC")) == "UTC"
    names = models.zone_names()
    assert len(names) > 400
    assert not any(name.startswith(("posix/", "right/")) for name in names)
    for wrong in (
        "",
        "Europe/Nowhere",
        "localtime",
        "../../etc/passwd",
        "/etc/localtime",
        "UTC\0",
        "Europe/",
        "x" * 500,
    ):
        assert models.zone(wrong) is None


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("?status=failed&agent=", "status=failed"),
        ("", ""),
        ("q=told%3A%3E5+restic&sort=-started", "q=told%3A%3E5+restic&sort=-started"),
        ("service=a&service=b", "service=a&service=b"),
        ("next=https%3A%2F%2Fevil.example", "next=https%3A%2F%2Fevil.example"),  # a value, which is no address here
    ],
)
def test_a_query_is_stored_in_one_form(given, stored):
    assert models.clean_query(given) == stored


def test_what_is_no_query_of_a_list_is_refused(subtests):
    for wrong in [
        "https://evil.example/?a=b",
        "//evil.example",
        "/memories?status=failed",
        "javascript:alert(1)",
        "a=b#top",
        "a=%0d%0aSet-Cookie:x",
        "a=" + "x" * 2000,
        "&".join(f"a{n}=1" for n in range(100)),
        "<b>=1",
    ]:
        with subtests.test(str(wrong)), pytest.raises(ValueError, match=r"\.$"):
            models.clean_query(wrong)


@given(st.lists(st.tuples(st.from_regex(r"\A[a-z][a-z_]{0,9}\Z"), st.text(max_size=30)), max_size=8))
def test_any_text_that_is_taken_comes_back_as_it_was(fields):
    try:
        stored = models.clean_query(urlencode(fields))
    except ValueError:
        assert any(not char.isprintable() for _, value in fields for char in value)
        return
    assert parse_qsl(stored) == [(name, value) for name, value in fields if value]
    assert models.clean_query(stored) == stored
