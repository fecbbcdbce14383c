"""The forms of the projects' pages. They check; the verbs of `memories.lifecycle` save."""

from __future__ import annotations

from typing import Any

from django import forms

from claudeops.lib.time_field import TimeField
from memories.capture import fields as stored
from memories.errors import InvalidProject
from memories.lifecycle.projects import OF_FILES, SETTINGS
from memories.models import Project
from memories.models.project import FILE_LIMITS, LONGEST_LIFETIME
from memories.taxonomy import PROJECT
from memories.web.forms import checked

NEVER = "never"
LIMIT_LABELS = {
    "kilobytes": "kilobytes",
    "sections": "sections",
    "items": "items a section",
    "line": "characters a line",
}


class LifetimeField(forms.CharField):
    """Days, "never", or nothing for the default of the type; cleaned: a number, None for never, "" for the default."""

    def __init__(self, category: str) -> None:
        lasts = PROJECT.expires.get(category)
        default = f"{lasts.days} days" if lasts else NEVER
        super().__init__(
            label=f"A {category} expires after",
            required=False,
            max_length=8,
            help_text=f"Days, or never. Empty: {default}.",
            widget=forms.TextInput(attrs={"placeholder": default, "autocomplete": "off", "size": 8}),
        )

    def clean(self, value: Any) -> Any:
        text = super().clean(value).strip().lower()
        if text in ("", NEVER):
            return None if text else ""
        if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= LONGEST_LIFETIME):
            raise forms.ValidationError(f"Write 1 to {LONGEST_LIFETIME:,} days, never, or nothing.")
        return int(text)


class ProjectForm(forms.ModelForm):
    """The settings of a project but for its agents' files; its lifetimes have a field for each type."""

    class Meta:
        model = Project
        fields = [name for name in SETTINGS if name not in ("default_expiry", *OF_FILES)]
        widgets = {
            "description": forms.Textarea(attrs={"rows": 2}),
            "trusted_authors": forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
            "allowed_signers": forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        }

    def __init__(self, data: Any = None, instance: Project | None = None) -> None:
        super().__init__(data, auto_id="project-%s", instance=instance)
        for category in PROJECT.categories:
            field = LifetimeField(category)
            if category in self.instance.default_expiry:
                days = self.instance.default_expiry[category]
                field.initial = NEVER if days is None else str(days)
            self.fields[f"expire_{category}"] = field

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the verbs, for a valid form."""
        lifetimes = {name: self.cleaned_data[f"expire_{name}"] for name in PROJECT.categories}
        fields = {name: self.cleaned_data[name] for name in self.Meta.fields}
        return {**fields, "default_expiry": {name: days for name, days in lifetimes.items() if days != ""}}

    def refuse(self, error: InvalidProject) -> None:
        """Show what the verb refused."""
        for name, message in error.fields.items():
            self.add_error(name if name in self.fields else None, message)


class SettingsForm(ProjectForm):
    """All settings; each limit of the agents' files has a field of its own, empty for its default."""

    class Meta(ProjectForm.Meta):
        fields = [
            *ProjectForm.Meta.fields,
            "files_folder",
            "files_pattern",
            "files_sections",
            "takes_phrases",
            "observed",
        ]
        widgets = {
            **ProjectForm.Meta.widgets,
            "files_sections": forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        }

    def __init__(self, data: Any = None, instance: Project | None = None) -> None:
        super().__init__(data, instance)
        for name in ("files_folder", "files_pattern"):
            self.fields[name].required = False
        for name, (default, least, most) in FILE_LIMITS.items():
            self.fields[f"limit_{name}"] = forms.IntegerField(
                label=f"Agent files: {LIMIT_LABELS[name]}",
                required=False,
                min_value=least,
                max_value=most,
                initial=self.instance.files_limits.get(name),
                widget=forms.NumberInput(attrs={"placeholder": default}),
                help_text=f"{least} to {most}. Empty: {default}.",
            )
        of_files = ("files_folder", "files_pattern", *(f"limit_{name}" for name in FILE_LIMITS))
        others = [name for name in self.fields if name not in (*of_files, "files_sections", "takes_phrases")]
        self.order_fields([*others, *of_files, "takes_phrases", "files_sections"])

    def settings(self) -> dict[str, Any]:
        fields = super().settings()
        for name in ("files_folder", "files_pattern"):
            fields[name] = fields[name] or getattr(Project(), name)
        limits = {name: self.cleaned_data[f"limit_{name}"] for name in FILE_LIMITS}
        fields["files_sections"] = fields["files_sections"] or {}
        return {**fields, "files_limits": {name: value for name, value in limits.items() if value is not None}}


class NewForm(ProjectForm):
    class Meta(ProjectForm.Meta):
        fields = ["slug", *ProjectForm.Meta.fields]

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "slug": self.cleaned_data["slug"]}


class AddForm(forms.Form):
    """A memory of the project taxonomy."""

    observation = forms.CharField(
        label="Memory", widget=forms.Textarea(attrs={"rows": 2, "placeholder": "What holds, in one sentence."})
    )
    category = forms.ChoiceField(label="Type", choices=[(name, name) for name in PROJECT.categories])
    tags = forms.CharField(
        required=False,
        help_text="With commas between them: words, or paths such as src/core/**.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    relevance_score = forms.FloatField(
        label="Relevance",
        required=False,
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text="From 0 to 1, or empty.",
    )
    expires_at = TimeField(
        label="Expires",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="Empty: by its type.",
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="add-%s")

    def clean_observation(self) -> str:
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def clean_tags(self) -> list[str]:
        tags: list[str] = checked(stored.checked_tags, self.cleaned_data["tags"].split(","))
        return tags


class EndForm(forms.Form):
    """The end of a memory that a person saw when renewing it; nothing where no page showed one."""

    end = TimeField(required=False)
