"""The forms of the sessions' pages: running a session, a place in a list or a log, a cooldown."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.urls import reverse_lazy

from memories.models import Project
from sessions_app.cooldowns.limits import LONGEST_REASON
from sessions_app.errors import InvalidBrief
from sessions_app.log.entries import HIGHEST, KINDS, Only
from sessions_app.models import Agent, Remediation
from sessions_app.prompts import brief
from sessions_app.queries.filters import TIERS

IN_FORCE = "in_force"
BRIEF = ("title", "task_id", "write_scope", "excluded_paths", "read_first", "prohibited")
LONGEST_TASK = 20_000
LONGEST_SEARCH = 200
MOST_TOKENS = 1_000_000


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})

    def clean(self, value: Any) -> list[str]:
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


class NoteForm(forms.Form):
    """The operator's words for a session that retries or continues another."""

    note = forms.CharField(
        required=False,
        max_length=brief.LONGEST["note"],
        label="Your words for it",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "What it should do otherwise; they arrive whole."}),
    )


class RunForm(forms.Form):
    agent = forms.ModelChoiceField(
        queryset=Agent.objects.only("id", "slug"),
        to_field_name="slug",
        required=False,
        empty_label="none (the tier's default profile)",
        label="Agent",
    )
    tier = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Tier")
    prompt = forms.CharField(
        required=False,
        max_length=LONGEST_TASK,
        label="What to do",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "Empty: the agent's usual task."}),
    )
    dry_run = forms.BooleanField(required=False, label="Dry run: read only, change nothing")
    project = forms.ModelChoiceField(
        queryset=Project.objects.order_by("slug"),
        to_field_name="slug",
        required=False,
        empty_label="the agent's, or none",
        label="Project",
    )
    title = forms.CharField(required=False, max_length=brief.LONGEST["title"], label="Title")
    task_id = forms.CharField(required=False, max_length=brief.LONGEST["task_id"], label="Task id")
    write_scope = LinesField(required=False, label="Write scope, a glob a line")
    excluded_paths = LinesField(required=False, label="Excluded paths, a glob a line")
    read_first = LinesField(required=False, label="Read first, a path a line")
    prohibited = LinesField(required=False, label="Prohibited, one a line")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        allowed = [(str(tier), name) for tier, name in TIERS if tier <= settings.CLAUDEOPS_MAX_TIER]
        tier: Any = self.fields["tier"]
        tier.choices = [("", "the agent's"), *allowed]
        if settings.CLAUDEOPS_DRY_RUN:
            self.fields["dry_run"].disabled = True
            self.fields["dry_run"].initial = True
            self.fields["dry_run"].label = "Dry run: enforced by CLAUDEOPS_DRY_RUN"

    def asked(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        return {
            "agent": cleaned["agent"],
            "tier": cleaned["tier"],
            "prompt_task": cleaned["prompt"].strip(),
            "dry_run": cleaned["dry_run"],
            "project": cleaned["project"],
            "brief": {name: cleaned[name] for name in BRIEF if cleaned[name]},
        }

    def usual(self) -> list[Any]:
        return [field for field in self if field.name not in (*BRIEF, "project")]

    def further(self) -> list[Any]:
        return [field for field in self if field.name in (*BRIEF, "project")]

    def clean(self) -> dict[str, Any]:
        """Refuse a brief that a session would refuse, at its field."""
        cleaned = super().clean() or {}
        try:
            brief.checked({name: cleaned[name] for name in BRIEF if cleaned.get(name)})
        except InvalidBrief as error:
            for name, message in error.fields.items():
                self.add_error(name, f"{message} {error.fix}".strip())
        return cleaned


class PlaceForm(forms.Form):
    """A place in a list: the rows older than `before`, or newer than `after` (ids)."""

    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    after = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)


TYPED = {
    "hx-get": reverse_lazy("ask"),
    "hx-include": "closest form",
    "hx-trigger": "input changed delay:400ms",
    "hx-target": "#ask-result",
    "hx-select": "#ask-result",
    "hx-swap": "outerHTML",
    "hx-sync": "closest form:queue last",
    "hx-push-url": "false",
}
"""A field whose text the answer follows as it is typed. The form stays, and with it the cursor."""


class AskForm(forms.Form):
    """Whom a prompt is for; what is empty is the agent's."""

    agent = forms.ModelChoiceField(
        queryset=Agent.objects.select_related("project").order_by("slug"),
        to_field_name="slug",
        required=False,
        empty_label="any agent of tier 1",
        label="Agent",
        widget=forms.Select(attrs={"class": "field"}),
    )
    task = forms.CharField(
        required=False,
        max_length=LONGEST_TASK,
        label="Task",
        widget=forms.TextInput(attrs={"class": "field", "placeholder": "a task, or the text of an alert", **TYPED}),
    )
    project = forms.ModelChoiceField(
        queryset=Project.objects.order_by("slug"),
        to_field_name="slug",
        required=False,
        empty_label="the agent's, or none",
        label="Project",
    )
    tier = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Tier")
    write_scope = forms.CharField(
        required=False,
        max_length=LONGEST_TASK,
        label="Write scope",
        widget=forms.TextInput(attrs={"placeholder": "globs, with spaces between", "spellcheck": "false", **TYPED}),
    )
    budget = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_TOKENS,
        label="Budget, tokens",
        widget=forms.NumberInput(attrs={"placeholder": "the agent's", "step": "1"}),
    )
    session = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        label="Compare with session",
        widget=forms.NumberInput(attrs={"placeholder": "the last one", "step": "1"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="ask-%s")
        tier: Any = self.fields["tier"]
        tier.choices = [("", "the agent's"), *((str(tier), name) for tier, name in TIERS if tier)]

    def further(self) -> list[Any]:
        return [field for field in self if field.name not in ("agent", "task")]

    def clean_write_scope(self) -> list[str]:
        paths = str(self.cleaned_data["write_scope"]).split()
        try:
            return list(brief.checked({"write_scope": paths}).write_scope)
        except InvalidBrief as error:
            raise ValidationError(f"{error.fields['write_scope']} {error.fix}".strip()) from error

    def query(self) -> str:
        """Return the filled fields as a query string, without the session to compare with."""
        filled = {name: self.data.get(name) for name in self.fields if name != "session"}
        return urlencode({name: value for name, value in filled.items() if value})


class LogForm(forms.Form):
    """A place in a log, and which lines: after a line, around `line`, or the last before a line and above `floor`."""

    kind = forms.ChoiceField(required=False, choices=[("", "all"), *((name, name) for name in KINDS)])
    q = forms.CharField(required=False, max_length=LONGEST_SEARCH)
    line = forms.IntegerField(required=False, min_value=1, max_value=HIGHEST)
    after = forms.IntegerField(required=False, min_value=0, max_value=HIGHEST)
    before = forms.IntegerField(required=False, min_value=1, max_value=HIGHEST)
    floor = forms.IntegerField(required=False, min_value=0, max_value=HIGHEST)

    @property
    def only(self) -> Only:
        return Only(self.cleaned_data["kind"], self.cleaned_data["q"])


class RawPageForm(forms.Form):
    page = forms.IntegerField(required=False, min_value=1, max_value=HIGHEST)


class TimelineForm(forms.Form):
    """Which part of a timeline: the errors alone, or from a line of the log on."""

    timeline = forms.ChoiceField(required=False, choices=[("", "all"), ("errors", "errors")])
    start = forms.IntegerField(required=False, min_value=1, max_value=HIGHEST)


class ServiceForm(forms.Form):
    """Which cooldowns: of one service, of those with one in force, or all; `skip` services are on earlier pages."""

    service = forms.CharField(required=False, max_length=64)
    state = forms.ChoiceField(required=False, choices=[("", "all"), (IN_FORCE, "in force")])
    skip = forms.IntegerField(required=False, min_value=0, max_value=100_000)


class ClearForm(forms.Form):
    service = forms.CharField(max_length=64)
    action = forms.ChoiceField(required=False, choices=[("", "restart and redeployment"), *Remediation.choices])
    reason = forms.CharField(
        max_length=LONGEST_REASON, error_messages={"required": "A reason is required; it is recorded."}
    )


class TraceForm(forms.Form):
    """What should have been remembered, and the session that should have been told it (empty: the latest)."""

    q = forms.CharField(required=False, max_length=LONGEST_TASK, label="What it should have remembered")
    session = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, label="In session")
