"""The forms of purges: what is to be forgotten, and the confirmation."""

from __future__ import annotations

from typing import Any

from django import forms

from claudeops.lib.list_view.selection import BIGGEST_ID
from claudeops.purge.choice import Choice


class ChoiceForm(forms.Form):
    """By what is chosen, beside a selection of memories. All that are given apply."""

    query = forms.CharField(
        required=False,
        max_length=1_000,
        label="Text",
        help_text="Memories that contain it, and the text wherever it stands; below 8 characters as a whole word.",
    )
    service = forms.CharField(required=False, max_length=64, help_text="general: memories without a service.")
    project = forms.CharField(required=False, max_length=64, help_text="Its slug.")
    agent = forms.CharField(required=False, max_length=64, help_text="Its slug.")
    session = forms.IntegerField(
        required=False, min_value=1, max_value=BIGGEST_ID, help_text="Its number: all that it wrote."
    )
    person = forms.CharField(required=False, max_length=150, help_text="The account's name: all that it wrote.")
    short = forms.BooleanField(
        required=False, label="Short texts, too", help_text="Texts of memories below 8 characters, as whole words."
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        for name, field in self.fields.items():
            if name != "short":
                field.widget.attrs["class"] = "field"

    def choice(self) -> Choice:
        given = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        return Choice(**given)


class ConfirmForm(forms.Form):
    """The number of memories, typed by hand, and what else is to be done."""

    number = forms.IntegerField(min_value=0, max_value=BIGGEST_ID, label="Number of memories")
    backups = forms.BooleanField(required=False, label="Also remove these backups")
    force = forms.BooleanField(required=False, label="Although these sessions run")

    def __init__(self, expected: int, data: Any = None) -> None:
        super().__init__(data)
        self.expected = expected

    def clean_number(self) -> int:
        number = int(self.cleaned_data["number"])
        if number != self.expected:
            raise forms.ValidationError(f"Type {self.expected}, the number of memories that would be removed.")
        return number
