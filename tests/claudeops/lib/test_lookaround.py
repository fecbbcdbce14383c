"""What is left of a pattern without its lookarounds."""

from __future__ import annotations

import pytest
import re2

from claudeops.lib.lookaround import without_lookaround


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        (r"(?<!user )\bagents?\b(?!\s(?:pool|port))", r"\bagents?\b"),
        (r"://(?!(?:localhost|172\.(?:1[6-9]|3[01])\.|\[::1\]|[\w()-]+(?:[:/]|$)))\w", r"://\w"),
        (r"(?=a\)b)(?<=[)])c", "c"),
        (r"(?:a|(?P<name>b))(?i:c)\(", r"(?:a|(?P<name>b))(?i:c)\("),
    ],
)
def test_lookarounds_are_left_out_and_nothing_else(pattern, left):
    assert without_lookaround(pattern) == left


def test_one_that_is_nested_too_deeply_is_refused_by_re2():
    with pytest.raises(re2.error):
        re2.compile(without_lookaround("(?!(a(b(c(d)))))"))
