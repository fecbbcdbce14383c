"""Exports of lists: what a cell holds, which texts are defused, JSON that can be read back."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.list_view.columns import Column, shown_of, size_of
from claudeops.lib.list_view.export import cell, csv_lines, json_lines


@dataclass
class Row:
    pk: int
    text: Any


COLUMNS = (Column("text", "Text", lambda row: row.text),)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(start):
    assert cell(f"{start}cmd|'/c calc'!A0") == f"'{start}cmd|'/c calc'!A0"


def test_numbers_times_and_nothing_are_written_plainly():
    at = datetime(2026, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    assert [cell(value) for value in (-3, -0.5, Decimal("1.25"), None, True, at)] == [
        *("-3", "-0.5", "1.25", "", "true", "2026-03-01T10:30:00Z")
    ]


@given(st.lists(st.text(), max_size=5))
def test_what_csv_holds_is_the_text_or_the_defused_text(texts):
    rows = [Row(n, text) for n, text in enumerate(texts)]
    found = list(csv.reader(io.StringIO("".join(csv_lines(COLUMNS, rows)), newline="")))
    assert found[0] == ["id", "text"]
    assert [line[1].removeprefix("'") for line in found[1:]] == [text.removeprefix("'") for text in texts]
    assert not any(line[1].startswith(("=", "+", "-", "@", "\t", "\r")) for line in found[1:])


@given(st.lists(st.text() | st.integers() | st.none(), max_size=5))
def test_json_reads_back_as_what_was_written(values):
    rows = [Row(n, value) for n, value in enumerate(values)]
    found = json.loads("".join(json_lines(COLUMNS, rows)))
    assert found == [{"id": n, "text": value} for n, value in enumerate(values)]


def test_json_writes_a_time_in_utc():
    rows = [Row(1, datetime(2026, 3, 1, tzinfo=UTC))]
    assert json.loads("".join(json_lines(COLUMNS, rows)))[0]["text"] == "2026-03-01T00:00:00Z"


def test_fixed_columns_are_always_shown_and_the_usual_ones_unless_a_person_chose():
    columns = (
        Column("text", "Text", str, fixed=True),
        Column("service", "Service", str),
        Column("tier", "Tier", str, shown=False),
    )
    assert shown_of(columns, None) == {"text", "service"}
    assert shown_of(columns, []) == {"text"}
    assert shown_of(columns, ["tier", "unknown"]) == {"text", "tier"}


def test_only_the_offered_sizes_are_sizes():
    assert [size_of(text) for text in ("25", "200", "26", "-25", "1e2", "", "٢٥")] == [25, 200, *[None] * 5]
