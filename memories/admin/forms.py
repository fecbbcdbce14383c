"""The forms of the memories' admin pages: bad input is said at its field, in the store's own words.

They check by the same functions the store uses (`memories.capture.fields`); they save nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from memories.admin.filters import category_groups
from memories.capture import fields as stored
from memories.errors import InvalidMemory, MemoriesError
from memories.models import Memory
from memories.taxonomy import TAXONOMIES

REASON = "Goes into the memory's history."


def checked(check: Callable[..., Any], *values: Any) -> Any:
    """What `check` makes of the values; its refusal as a form's error."""
    try:
        return check(*values)
    except InvalidMemory as refusal:
        raise ValidationError(f"{refusal} {refusal.fix}".strip()) from refusal


class TagsField(forms.CharField):
    """A list of words, typed with commas between them."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(str(part) for part in value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return list(value)
        return [part.strip() for part in str(value or "").split(",") if part.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(initial) != self.to_python(data))

    def validate(self, value: Any) -> None:
        return None

    def run_validators(self, value: Any) -> None:
        return None


class LocalDateTime(forms.DateTimeInput):
    """The browser's own date and time field; all times here are UTC."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class MinuteField(forms.DateTimeField):
    """A time in UTC, shown to the minute; what the row has of seconds is no change of the person's."""

    widget = LocalDateTime

    def has_changed(self, initial: Any, data: Any) -> bool:
        if isinstance(initial, datetime):
            initial = initial.replace(second=0, microsecond=0)
        return bool(super().has_changed(initial, data))


class MemoryForm(forms.ModelForm):
    """One memory.

    `show_hidden_initial`: what a session changed while the page was open is not taken for the person's change.
    """

    refused: MemoriesError | None = None
    """Why the store refused what passed this form (set by the admin, which then shows the form again)."""

    observation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text="What was observed, in one sentence. Line breaks are folded.",
        show_hidden_initial=True,
    )
    service = forms.CharField(
        required=False,
        empty_value=None,
        help_text="One word; empty or general = it belongs to no service.",
        show_hidden_initial=True,
    )
    category = forms.ChoiceField(choices=category_groups, show_hidden_initial=True)
    confidence = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "any", "min": 0, "max": 1}),
        show_hidden_initial=True,
    )
    tags = TagsField(required=False, help_text="Separated by commas.", show_hidden_initial=True)
    persistent = forms.BooleanField(required=False, help_text="Never decays.", show_hidden_initial=True)
    expires_at = MinuteField(
        required=False,
        label="Expires",
        help_text="UTC. From then on it is inactive.",
        show_hidden_initial=True,
    )
    reason = forms.CharField(required=False, max_length=500, label="Why", help_text=REASON)

    class Meta:
        model = Memory
        fields = ("observation", "service", "category", "confidence", "tags", "persistent", "expires_at")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            taxonomy = TAXONOMIES[self.instance.taxonomy]
            self.fields["category"].choices = [(name, name) for name in taxonomy.categories]  # type: ignore[attr-defined]
            self.fields["confidence"].required = True
            self.fields["confidence"].help_text = (
                ""
                if taxonomy.inactive_below is None
                else f"0 to 1. Inactive below {taxonomy.inactive_below:g}; raised to it or above, it is active again."
            )
        else:
            self.fields["confidence"].help_text = "0 to 1. Empty = the taxonomy's own."
            self.fields["confidence"].initial = None
            self.initial.setdefault("confidence", None)

    def clean_observation(self) -> str:
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def clean_service(self) -> str | None:
        service: str | None = checked(stored.checked_service, self.cleaned_data["service"])
        return service

    def clean_tags(self) -> list[str]:
        return list(checked(stored.checked_tags, self.cleaned_data["tags"]))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        slug = self.instance.taxonomy if self.instance.pk else cleaned.get("taxonomy") or "ops"
        category = cleaned.get("category")
        if category and slug in TAXONOMIES:
            try:
                checked(stored.checked_category, category, TAXONOMIES[slug])
            except ValidationError as error:
                self.add_error("category", error)
        if self.refused is not None:
            self.add_error("observation", f"{self.refused} {self.refused.fix}".strip())
        return cleaned

    def _post_clean(self) -> None:
        """An empty confidence is the taxonomy's affair, not a value for the row."""
        empty = self.cleaned_data.get("confidence") is None
        if empty:
            self.cleaned_data.pop("confidence", None)
        super()._post_clean()  # type: ignore[misc]
        if empty:
            self.cleaned_data["confidence"] = None
