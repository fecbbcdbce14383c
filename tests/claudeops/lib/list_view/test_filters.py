"""Comparisons in filters: what each form means, and what is refused."""

from __future__ import annotations

import pytest

from claudeops.lib.list_view.filters import parse_comparison

DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "spans", "bounds"),
    [
        (">5", False, (("gt", 5.0),)),
        ("<= 0.4", False, (("lte", 0.4),)),
        ("0.3..0.6", False, (("gte", 0.3), ("lte", 0.6))),
        ("5", False, (("gte", 5.0), ("lte", 5.0))),
        ("<14d", True, (("lt", 14 * DAY),)),
        (">=2w", True, (("gte", 14 * DAY),)),
        ("3..36h", True, (("gte", 3 * DAY), ("lte", 1.5 * DAY))),
    ],
)
def test_each_form(text, spans, bounds):
    assert parse_comparison(text, spans=spans).bounds == bounds


@pytest.mark.parametrize(
    ("text", "spans"), [("", False), ("x", False), (">5d", False), ("<14y", True), (">1..2", True)]
)
def test_anything_else_is_refused(text, spans):
    with pytest.raises(ValueError):
        parse_comparison(text, spans=spans)
