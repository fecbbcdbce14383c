"""Forms of the memories' admin pages. They check with the store's functions and save nothing."""

from __future__ import annotations

from typing import Any

from django import forms

from claudeops.lib.time_field import TimeField
from memories.capture import fields as stored
from memories.errors import MemoriesError
from memories.models import Memory
from memories.taxonomy import TAXONOMIES
from memories.web.forms import categories, checked, window_field

REASON = "Recorded in the memory's history."


class TagsField(forms.CharField):
    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list | tuple) else value


class MemoryForm(forms.ModelForm):
    """`show_hidden_initial`: what a session changed while the page was open is not the person's change."""

    refused: MemoriesError | None = None
    """The store's error for data that passed this form; the admin sets it to show the form again."""

    observation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text="What was observed, in one sentence. Line breaks are folded.",
        show_hidden_initial=True,
    )
    service = forms.CharField(
        required=False,
        empty_value=None,
        help_text="One word; empty or general: no service.",
        show_hidden_initial=True,
    )
    category = forms.ChoiceField(choices=categories, show_hidden_initial=True)
    confidence = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "any", "min": 0, "max": 1}),
        help_text="0 to 1. Empty: the taxonomy's default.",
        show_hidden_initial=True,
    )
    tags = TagsField(required=False, help_text="Separated by commas.", show_hidden_initial=True)
    persistent = forms.BooleanField(required=False, help_text="Never decays.", show_hidden_initial=True)
    expires_at = TimeField(
        required=False,
        label="Expires",
        help_text="UTC. From then on the memory is inactive.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": 1}, format="%Y-%m-%dT%H:%M:%S"),
        show_hidden_initial=True,
    )
    surface = window_field(show_hidden_initial=True)
    reason = forms.CharField(required=False, max_length=500, label="Reason", help_text=REASON)

    class Meta:
        model = Memory
        fields = ("observation", "service", "category", "confidence", "tags", "persistent", "expires_at", "surface")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk:
            self.initial["confidence"] = None
            return
        taxonomy = TAXONOMIES[self.instance.taxonomy]
        self.fields["category"].choices = [(name, name) for name in taxonomy.categories]  # type: ignore[attr-defined]
        self.fields["confidence"].required = True
        self.fields["confidence"].help_text = (
            ""
            if taxonomy.inactive_below is None
            else f"0 to 1. Inactive below {taxonomy.inactive_below:g}; raised to it or above, it is active again."
        )

    def clean_observation(self) -> str:
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def clean_service(self) -> str | None:
        service: str | None = checked(stored.checked_service, self.cleaned_data["service"])
        return service

    def clean_tags(self) -> list[str]:
        tags = [tag.strip() for tag in self.cleaned_data["tags"].split(",") if tag.strip()]
        return list(checked(stored.checked_tags, tags))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        slug = self.instance.taxonomy if self.instance.pk else cleaned.get("taxonomy") or "ops"
        if "category" in cleaned and slug in TAXONOMIES:
            try:
                checked(stored.checked_category, cleaned["category"], TAXONOMIES[slug])
            except forms.ValidationError as error:
                self.add_error("category", error)
        if "surface" in cleaned and slug in TAXONOMIES:
            try:
                cleaned["surface"] = checked(stored.checked_surface, cleaned["surface"], TAXONOMIES[slug])
            except forms.ValidationError as error:
                self.add_error("surface", error)
        if self.refused is not None:
            self.add_error("observation", f"{self.refused} {self.refused.fix}".strip())
        return cleaned

    def _post_clean(self) -> None:
        """Leave an empty confidence to the taxonomy: it is no value for the row."""
        empty = self.cleaned_data.get("confidence") is None
        if empty:
            self.cleaned_data.pop("confidence", None)
        super()._post_clean()  # type: ignore[misc]
        if empty:
            self.cleaned_data["confidence"] = None
