"""Write what a list shows as CSV or JSON, one row after the other, so that no file stands in memory.

Texts come as they are stored, with secrets masked. Times are UTC, as ISO 8601.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone

from claudeops.lib.list_view.columns import Column

MOST = 50_000
"""Rows of one export; further ones are left out, and the file's name says so."""
CHUNK = 500
FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet reads as the start of a formula. Such a text gets an apostrophe before it."""


def plain(value: Any) -> str | int | float | bool | None:
    """Return a value of a column as JSON has it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def cell(value: Any) -> str:
    """Return a value as a cell of CSV; a text that a spreadsheet would run is defused."""
    content = plain(value)
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, str) and content.startswith(FORMULA):
        return f"'{content}"
    return "" if content is None else str(content)


class _Line:
    """A file of one line: `write` returns what it was given."""

    def write(self, text: str) -> str:
        return text


def csv_lines(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(["id", *(column.name for column in columns)])
    for row in rows:
        yield writer.writerow([row.pk, *(cell(column.value(row)) for column in columns)])


def json_lines(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[str]:
    """Yield an array of objects, one a line."""
    before = "[\n"
    for row in rows:
        record = {"id": row.pk, **{column.name: plain(column.value(row)) for column in columns}}
        yield before + json.dumps(record, ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def export(name: str, kind: str, columns: Sequence[Column], rows: QuerySet[Any]) -> StreamingHttpResponse:
    """Return the file of a list; `kind` is csv or json."""
    write = csv_lines if kind == "csv" else json_lines
    part = f"-first-{MOST}" if rows[MOST : MOST + 1].exists() else ""
    file = f"{name}-{timezone.now():%Y-%m-%d}{part}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"', "X-Content-Type-Options": "nosniff"}
    lines = write(columns, rows[:MOST].iterator(CHUNK))
    return StreamingHttpResponse(lines, content_type=FORMATS[kind], headers=headers)
