"""The forms of an agent's file. They check; the verbs of `memories.lifecycle` save."""

from __future__ import annotations

from typing import Any

from django import forms

from claudeops.lib.secrets import mask
from memories.files.conflicts import MASKED
from memories.files.limits import Limits
from memories.files.sections import sections_for
from memories.models import AgentFile
from memories.taxonomy import AGENT


class LineForm(forms.Form):
    """A line of a file: its text and its type, which decides the section. `change` is the latest one the person saw."""

    text = forms.CharField(
        label="Line", max_length=1_000, widget=forms.Textarea(attrs={"rows": 2, "placeholder": "One fact, in a line."})
    )
    category = forms.ChoiceField(label="Type")
    change = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(
        self, file: AgentFile, data: Any = None, initial: dict[str, Any] | None = None, name: str = "line"
    ) -> None:
        super().__init__(data, auto_id=f"{name}-%s", initial=initial)
        self.most = Limits.of(file.limits, file.project.files_limits).line - 2
        sections = sections_for(file.agent, file.project.files_sections)
        category: Any = self.fields["category"]
        category.choices = [(name, f"{name}: {sections.section_of(name)}") for name in AGENT.categories]
        for field in ("text", "category"):
            self.fields[field].widget.attrs["class"] = "field"
        self.fields["text"].help_text = f"At most {self.most} characters."

    def clean_text(self) -> str:
        text = " ".join(self.cleaned_data["text"].split())
        if len(text) > self.most:
            raise forms.ValidationError(f"{len(text)} characters; a line has at most {self.most}.")
        if MASKED in text or mask(text) != text:
            raise forms.ValidationError("A credential does not belong into a memory. Change such a line in the file.")
        return text


class TextForm(forms.Form):
    """The whole text of a file, credentials masked; `sha256` is that of the bytes that the person read."""

    text = forms.CharField(
        label="The file’s text",
        strip=False,
        required=False,
        widget=forms.Textarea(attrs={"rows": 30, "spellcheck": "false", "class": "field mono"}),
    )
    sha256 = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
