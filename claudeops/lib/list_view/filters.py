"""Comparisons and periods as values of filters. Parsing is pure.

A comparison is `>5`, `<=0.4`, `<14d`, `3..7` or `5`; a period `24h`, `7d` or `2026-11-24T03:00Z..2026-11-24T04:00Z`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone

from claudeops.lib import periods

UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
"""Seconds of the units of a time span."""

_NUMBER = r"\d{1,9}(?:\.\d{1,6})?"
_COMPARISON = re.compile(
    rf"(?P<sign>[<>]=?|=)?(?P<one>{_NUMBER})(?P<unit>[a-z])?(?:\.\.(?P<two>{_NUMBER})(?P<other>[a-z])?)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Lookups of the ORM (gt, gte, lt, lte) with their numbers; time spans are in seconds."""

    bounds: tuple[tuple[str, float], ...]


def parse_comparison(text: str, *, spans: bool = False) -> Comparison:
    """Parse a comparison. `spans`: numbers are time spans with a unit (h, d, w; none is d). Raises ValueError."""
    match = _COMPARISON.fullmatch(text.replace(" ", ""))
    if match is None or (match["two"] and match["sign"]):
        raise ValueError(text)
    one = _number(match["one"], match["unit"], spans)
    if match["two"]:
        bounds = (("gte", one), ("lte", _number(match["two"], match["other"], spans)))
    elif match["sign"] in (None, "="):
        bounds = (("gte", one), ("lte", one))
    else:
        lookup = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[match["sign"]]
        return Comparison(((lookup, one),))
    return Comparison(bounds)


def _number(digits: str, unit: str | None, spans: bool) -> float:
    if not spans:
        if unit:
            raise ValueError(unit)
        return float(digits)
    if (unit or "d") not in UNITS:
        raise ValueError(unit)
    return float(digits) * UNITS[unit or "d"]


class ComparisonField(forms.CharField):
    """A comparison as text; cleaned it is a Comparison, or None when empty."""

    def __init__(self, *, spans: bool = False, **options: Any) -> None:
        self.spans = spans
        super().__init__(**{"max_length": 40, **options})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_comparison(str(text), spans=self.spans)
        except ValueError:
            example = "<14d, >2w or 3d..10d" if self.spans else ">0.5, <=0.7 or 0.3..0.6"
            raise ValidationError(f"{str(text)[:40]!r} is no comparison; write for example {example}.") from None


class ComparisonFilter(django_filters.Filter):
    """A filter whose value is a comparison; `spans=True` for time spans."""

    field_class = ComparisonField


class PeriodField(forms.CharField):
    """A period as text, times without a zone in the active one; cleaned it is a Period, or None when empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 80, **options})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return periods.parse(str(text), timezone.now(), timezone.get_current_timezone())
        except ValueError:
            example = f"{', '.join(periods.RANGES)} or 2026-11-24T03:00..2026-11-24T04:00"
            raise ValidationError(f"{str(text)[:40]!r} is no period; write for example {example}.") from None


class PeriodFilter(django_filters.Filter):
    """Rows whose `field_name` lies in the period: its start included, its end not."""

    field_class = PeriodField

    def filter(self, qs: QuerySet[Any], value: periods.Period | None) -> QuerySet[Any]:
        if value is None:
            return qs
        bounds = {f"{self.field_name}__gte": value.since, f"{self.field_name}__lt": value.until}
        return qs.filter(**{lookup: at for lookup, at in bounds.items() if at is not None})
