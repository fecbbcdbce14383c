"""The admin's date hierarchy, from the first and last day alone: no row's date is truncated, no row is counted.

Knows the change list it is given (`claudeops.lib.admin_lists.LeanChangeList`) and no model.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date
from typing import Any

from django import template

register = template.Library()


def _months(year: int, first: date, last: date) -> Iterator[date]:
    for month in range(1, 13):
        begins = date(year, month, 1)
        ends = date(year, month, calendar.monthrange(year, month)[1])
        if ends >= first and begins <= last:
            yield begins


def _days(year: int, month: int, first: date, last: date) -> Iterator[date]:
    for day in range(1, calendar.monthrange(year, month)[1] + 1):
        this = date(year, month, day)
        if first <= this <= last:
            yield this


@register.inclusion_tag("admin/_dates.html")
def lean_dates(cl: Any) -> dict[str, Any]:
    """Links to the years, months or days between the first and the last row; empty when there are no rows."""
    bounds = getattr(cl, "days", None)
    if bounds is None:
        return {"choices": []}
    first, last = bounds
    field = cl.date_hierarchy
    chosen = {part: cl.params.get(f"{field}__{part}") for part in ("year", "month", "day")}
    year, month, day = (int(chosen[part]) if chosen[part] else None for part in ("year", "month", "day"))

    def link(**parts: int) -> str:
        return str(cl.get_query_string({f"{field}__{part}": value for part, value in parts.items()}, [f"{field}__"]))

    back: dict[str, str] | None
    if year and month and day:
        this = date(year, month, day)
        back = {"link": link(year=year, month=month), "title": f"{this:%B %Y}"}
        return {"back": back, "choices": [{"title": f"{day} {this:%B}"}]}
    if year and month:
        back = {"link": link(year=year), "title": str(year)}
        days = [
            {"link": link(year=year, month=month, day=this.day), "title": f"{this.day} {this:%b}"}
            for this in _days(year, month, first, last)
        ]
        return {"back": back, "choices": days}
    if year is None and first.year != last.year:
        years = range(max(first.year, last.year - 30), last.year + 1)
        return {"choices": [{"link": link(year=one), "title": str(one)} for one in years]}
    shown = year or first.year
    back = {"link": link(), "title": "All dates"} if year else None
    months = [
        {"link": link(year=shown, month=this.month), "title": f"{this:%b %Y}"} for this in _months(shown, first, last)
    ]
    return {"back": back, "choices": months}
