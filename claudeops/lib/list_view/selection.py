"""The selection of a bulk action, as the list and the page that asks first send it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django import forms
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError

BIGGEST_ID = 2**63 - 1
UNREADABLE = "The selection could not be read. Nothing was changed."


class UnreadableSelection(Exception):
    """Which rows are selected cannot be read; the text says so, for people."""


class IdRangesField(forms.Field):
    """Ids as ranges ("1-50,53,60-61"), so that thousands fit into one hidden input; of several inputs all count."""

    widget = forms.MultipleHiddenInput
    MOST = 20_000
    RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)

    @staticmethod
    def pack(ids: Iterable[int]) -> str:
        parts = []
        for _, run in groupby(enumerate(sorted(set(ids))), lambda numbered: numbered[1] - numbered[0]):
            pks = [pk for _, pk in run]
            parts.append(f"{pks[0]}-{pks[-1]}" if len(pks) > 1 else f"{pks[0]}")
        return ",".join(parts)

    def to_python(self, value: Any) -> list[int]:
        """Parse ranges. Raises ValidationError for anything that `pack` does not write, and for more than MOST ids."""
        ids: list[int] = []
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value or "")
        for part in filter(None, text.split(",")):
            match = self.RANGE.fullmatch(part)
            low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
            if not 0 <= high - low < self.MOST - len(ids):
                raise ValidationError(f"{part[:40]!r} is no range of at most {self.MOST:,} ids.")
            ids.extend(range(low, high + 1))
        return ids


class Selection(forms.Form):
    """Ticked rows (`id`), `ids` as ranges, or all that match; `up_to` and `count` are from the page that asks first."""

    ids = IdRangesField(required=False)
    all_matching = forms.BooleanField(required=False)
    confirmed = forms.BooleanField(required=False)
    up_to = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST_ID)
    count = forms.IntegerField(required=False, min_value=0)

    def clean(self) -> None:
        for name in ("id", ACTION_CHECKBOX_NAME):  # an action on some of them would look like one on all
            values = self._given(name)
            if 0 < len(self._ticked(values)) < len(values):
                raise ValidationError("A ticked row could not be read.")

    def chosen(self, name: str = "id") -> list[int]:
        return [*self.cleaned_data["ids"], *self._ticked(self._given(name))]

    def _given(self, name: str) -> list[str]:
        return forms.MultipleHiddenInput().value_from_datadict(self.data, self.files, name) or []

    @staticmethod
    def _ticked(given: list[str]) -> list[int]:
        return [int(value) for value in given if value.isdecimal() and len(value) < 19]
