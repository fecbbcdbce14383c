"""A time in a form or a filter."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError

from claudeops.lib.times import in_utc


class TimeField(forms.DateTimeField):
    """A time in UTC: what Django's field takes, without years that a zone carries out of range."""

    def to_python(self, value: Any) -> datetime | None:
        moment = super().to_python(value)
        try:
            return in_utc(moment) if moment is not None else None
        except ValueError:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None


class TimeFilter(django_filters.DateTimeFilter):
    field_class = TimeField
