"""A period as the value of a filter: `24h`, `7d`, or `2026-11-24T03:00Z..2026-11-24T04:00Z`."""

from __future__ import annotations

from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone

from claudeops.lib import periods


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
