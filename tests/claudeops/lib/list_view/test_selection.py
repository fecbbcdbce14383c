"""The form field that carries selected ids through a page: `claudeops.lib.list_view.selection`."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.list_view.selection import IdRangesField

FIELD = IdRangesField(required=False)


@given(st.sets(st.integers(min_value=0, max_value=10**18 - 1), max_size=300))
def test_what_was_packed_is_unpacked_again(ids):
    assert FIELD.clean(FIELD.pack(ids)) == sorted(ids)


def test_thousands_of_neighbours_fit_into_a_few_characters():
    assert FIELD.pack(range(1, 5001)) == "1-5000"
    assert FIELD.pack([3, 1, 2, 7, 9, 8, 7]) == "1-3,7-9"
    assert FIELD.pack([]) == ""


def test_what_nobody_packed_is_refused(subtests):
    for text in ["x", "1-", "-1", "5-1", "1-2-3", "1;2", "1.5", "1-99999999999", f"0-{FIELD.MOST}", "٣", "9" * 5000]:
        with subtests.test(str(text)), pytest.raises(ValidationError):
            FIELD.clean(text)
