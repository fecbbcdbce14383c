"""The forms of the memories' pages. They check with the store's functions and save nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Avg, Max, Min, QuerySet

from claudeops.lib.list_view.selection import BIGGEST_ID, Selection
from claudeops.lib.time_field import TimeField
from memories.capture import fields as stored
from memories.capture.window import LONGEST
from memories.errors import InvalidMemory
from memories.lifecycle.bulk import BULK_ACTIONS, BulkAction
from memories.models import Memory, Project, RecallVote
from memories.recall import Question
from memories.recall.rerank import NAMES as PROFILES
from memories.recall.service import NARRATIVES
from memories.taxonomy import DEFAULT_CONFIDENCE, TAXONOMIES

ASKED_FROM = [
    ("mcp", "MCP (a model)"),
    ("injection", "prompt injection"),
    ("page", "dashboard"),
    ("api", "the API"),
    ("cli", "the command line"),
]
DECIMALS = 2


def checked(check: Callable[..., Any], *values: Any) -> Any:
    """Return the result of `check`; its refusal becomes a form error."""
    try:
        return check(*values)
    except InvalidMemory as refusal:
        raise ValidationError(f"{refusal} {refusal.fix}".strip()) from refusal


def slider(shows: str) -> forms.NumberInput:
    widget = forms.NumberInput(attrs={"min": "0", "max": "1", "step": "0.01", "data-shows": shows})
    widget.input_type = "range"
    return widget


def window_field(**more: Any) -> forms.CharField:
    """Return the field of the window of time in which a memory is told."""
    return forms.CharField(
        label="Window of time",
        required=False,
        max_length=LONGEST,
        widget=forms.TextInput(attrs={"placeholder": "mon 08:00-12:00", "autocomplete": "off"}),
        help_text="Empty: by its rank.",
        **more,
    )


def categories() -> list[tuple[str, list[tuple[str, str]]]]:
    return [(slug, [(name, name) for name in taxonomy.categories]) for slug, taxonomy in TAXONOMIES.items()]


class StatementForm(forms.Form):
    """The checks of what a person states, in any form with these fields."""

    def clean_observation(self) -> str:
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def clean_service(self) -> str | None:
        service: str | None = checked(stored.checked_service, self.cleaned_data["service"])
        return service

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        taxonomy = TAXONOMIES.get(self.slug_of_taxonomy() or "ops")
        for name, check in (("category", stored.checked_category), ("surface", stored.checked_surface)):
            if name in cleaned and taxonomy:
                try:
                    cleaned[name] = checked(check, cleaned[name], taxonomy)
                except ValidationError as error:
                    self.add_error(name, error)
        return cleaned

    def slug_of_taxonomy(self) -> str | None:
        """Return that of the statement; empty for the default."""
        return self.cleaned_data.get("taxonomy")


class AddForm(StatementForm):
    observation = forms.CharField(
        label="Observation",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "What was observed, in one sentence."}),
    )
    service = forms.CharField(
        label="Service",
        required=False,
        empty_value=None,
        widget=forms.TextInput(attrs={"list": "services", "placeholder": "general", "autocomplete": "off"}),
    )
    taxonomy = forms.ChoiceField(choices=[(slug, slug) for slug in TAXONOMIES], initial="ops", required=False)
    category = forms.ChoiceField(choices=categories, label="Category")
    confidence = forms.FloatField(
        initial=DEFAULT_CONFIDENCE, required=False, widget=slider("add-confidence"), label="Confidence"
    )
    surface = window_field()


class EditForm(forms.Form):
    """Edit in place. Fields that are not sent stay; `seen` is the latest change the user saw."""

    observation = forms.CharField(label="Observation", required=False, widget=forms.Textarea(attrs={"rows": 3}))
    confidence = forms.FloatField(label="Confidence", required=False)
    active = forms.TypedChoiceField(
        choices=[("true", "active"), ("false", "inactive")],
        coerce=lambda text: text == "true",
        empty_value=None,
        required=False,
        label="Active",
    )
    seen = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST_ID, widget=forms.HiddenInput)
    service = forms.CharField(
        required=False,
        max_length=stored.SERVICE_LENGTH,
        empty_value=None,
        show_hidden_initial=True,
        widget=forms.TextInput(attrs={"list": "services", "placeholder": "general", "autocomplete": "off"}),
    )
    category = forms.ChoiceField(required=False, show_hidden_initial=True)
    tags = forms.CharField(required=False, show_hidden_initial=True, help_text="With commas between them.")
    expires_at = TimeField(
        label="Expires",
        required=False,
        show_hidden_initial=True,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="Empty: no end of its own.",
    )
    surface = window_field(show_hidden_initial=True)
    project = forms.ModelChoiceField(
        Project.objects.all(), required=False, empty_label="all projects", show_hidden_initial=True
    )
    agent = forms.CharField(
        required=False,
        max_length=64,
        empty_value=None,
        show_hidden_initial=True,
        widget=forms.TextInput(attrs={"placeholder": "every agent", "autocomplete": "off"}),
    )
    relevance_score = forms.FloatField(
        label="Relevance",
        required=False,
        min_value=0,
        max_value=1,
        show_hidden_initial=True,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text="From 0 to 1, or empty.",
    )
    persistent = forms.BooleanField(label="Persistent: it never fades", required=False, show_hidden_initial=True)

    FURTHER = (
        *("service", "category", "tags", "expires_at", "surface", "project", "agent", "relevance_score"),
        "persistent",
    )
    """Fields of the memory's page. Each comes with the value that the person saw, so that what the person left alone
    stays as it is, whoever changed it meanwhile."""

    def __init__(self, memory: Memory, data: Any = None, *, seen: int = 0) -> None:
        self.memory = memory
        initial = {
            **{name: getattr(memory, name) for name in self.FURTHER if name != "project"},
            "tags": ", ".join(map(str, memory.tags)),
            "expires_at": memory.expires_at and memory.expires_at.replace(second=0, microsecond=0),
            "project": memory.project_id,
            "observation": memory.observation,
            "confidence": round(memory.confidence, DECIMALS),
            "active": "true" if memory.active else "false",
            "seen": seen,
        }
        super().__init__(data, initial=initial, auto_id=f"memory-{memory.pk}-%s")
        self.fields["confidence"].widget = slider(f"memory-{memory.pk}-confidence-shown")
        category = self.fields["category"]
        assert isinstance(category, forms.ChoiceField)  # noqa: S101
        category.choices = [(name, name) for name in TAXONOMIES[memory.taxonomy].categories]

    def clean_observation(self) -> str:
        if "observation" not in self.data:
            return ""
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def clean_service(self) -> str | None:
        service: str | None = checked(stored.checked_service, self.cleaned_data["service"])
        return service

    def clean_agent(self) -> str | None:
        agent: str | None = checked(stored.checked_agent, self.cleaned_data["agent"] or "", self.memory.taxonomy)
        return agent

    def clean_tags(self) -> list[str]:
        tags: list[str] = checked(stored.checked_tags, self.cleaned_data["tags"].split(","))
        return tags

    def clean_surface(self) -> str:
        return str(checked(stored.checked_surface, self.cleaned_data["surface"], TAXONOMIES[self.memory.taxonomy]))

    def further(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FURTHER]

    def on_current(self, current: Memory, seen: int) -> EditForm:
        """Return the form on the memory as it is now: what the person changed stays, the rest is current."""
        sent: Any = self.data  # a QueryDict
        data = sent.copy()
        now = EditForm(current, seen=seen)
        for field in filter(lambda field: self._was_sent(field.name), now.further()):
            value = field.value()
            if field.name not in self.changed_data:
                data.pop(field.html_name, None)
                if value is not None and value is not False:
                    data[field.html_name] = value
            data[field.html_initial_name] = "" if value is None else value
        data["seen"] = str(seen)
        return EditForm(current, data)

    def _was_sent(self, name: str) -> bool:
        """Whether the browser sent the field; it does not send a box without a tick."""
        return name in self.data or self[name].html_initial_name in self.data

    def wants_active(self) -> bool:
        return bool(self["active"].value() == "true")

    def changes(self) -> dict[str, Any]:
        """Return the arguments of `verbs.edit`, for a valid form; an unmoved slider (two decimals) changes nothing."""
        arguments: dict[str, Any] = {}
        if "observation" in self.data:
            arguments["observation"] = self.cleaned_data["observation"]
        confidence = self.cleaned_data["confidence"]
        if confidence is not None and stored.checked_confidence(confidence) != round(self.memory.confidence, DECIMALS):
            arguments["confidence"] = confidence
        if self.cleaned_data["active"] is not None:
            arguments["active"] = self.cleaned_data["active"]
        arguments |= {
            name: self.cleaned_data[name] for name in self.FURTHER if self._was_sent(name) and name in self.changed_data
        }
        if "project" in arguments:
            arguments["project"] = arguments["project"] and arguments["project"].pk
        return arguments


class RollBackForm(forms.Form):
    reason = forms.CharField(label="Why", required=False, max_length=500, help_text="Recorded in the history.")
    seen = forms.IntegerField(min_value=0, max_value=BIGGEST_ID, widget=forms.HiddenInput)


PROFILE = "balanced"
"""The recall profile where none is chosen."""


class RecallForm(forms.Form):
    query = forms.CharField(label="Search memories", max_length=10_000, strip=True)
    project = forms.CharField(label="Project", max_length=64, required=False, help_text="A slug, or global.")
    service = forms.CharField(label="Service", max_length=64, required=False)
    category = forms.ChoiceField(label="Category", required=False)
    taxonomy = forms.ChoiceField(label="Taxonomy", required=False)
    agent = forms.CharField(label="Agent", max_length=64, required=False)
    tags = forms.CharField(label="Tags", max_length=500, required=False, help_text="All of these, with commas.")
    profile = forms.ChoiceField(
        label="Profile", choices=[(name, name) for name in PROFILES], required=False, widget=forms.RadioSelect
    )
    limit = forms.IntegerField(label="At most", min_value=1, max_value=100, required=False)
    as_of = TimeField(
        label="As of (UTC)",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    include_hold = forms.BooleanField(label="Include held memories", required=False)
    narratives = forms.BooleanField(label="Include narratives of observed sessions", required=False)

    def __init__(self, data: Any = None, *, with_narratives: bool = False) -> None:
        if data is not None and not data.get("profile"):  # else the browser would show another one than is used
            data = data.copy()
            data["profile"] = PROFILE
        super().__init__(data, auto_id="recall-%s", initial={"profile": PROFILE})
        if not with_narratives:
            del self.fields["narratives"]
        names = sorted({name for taxonomy in TAXONOMIES.values() for name in taxonomy.categories})
        for field, values in (("category", names), ("taxonomy", list(TAXONOMIES))):
            choice = self.fields[field]
            assert isinstance(choice, forms.ChoiceField)  # noqa: S101
            choice.choices = [("", "any"), *((name, name) for name in values)]

    def question(self) -> Question:
        cleaned = self.cleaned_data
        return Question(
            query=cleaned["query"],
            project=cleaned["project"] or None,
            agent=cleaned["agent"] or None,
            service=cleaned["service"] or None,
            category=cleaned["category"] or None,
            taxonomy=cleaned["taxonomy"] or None,
            tags=tuple(tag.strip() for tag in cleaned["tags"].split(",") if tag.strip()),
            limit=cleaned["limit"],
            profile=cleaned["profile"],
            as_of=cleaned["as_of"],
            include_hold=cleaned["include_hold"],
            include=(NARRATIVES,) if cleaned.get("narratives") else (),
        )

    def narrows(self) -> bool:
        return any(
            str(self[name].value() or "") not in ("", "False")
            for name in self.fields
            if name not in ("query", "profile")
        )


class MarkForm(forms.Form):
    memory = forms.IntegerField(min_value=1, max_value=BIGGEST_ID)
    vote = forms.ChoiceField(choices=RecallVote.choices, required=False)


class AskedForm(forms.Form):
    surface = forms.ChoiceField(choices=[("", "anywhere"), *ASKED_FROM], required=False, label="Asked from")
    session = forms.IntegerField(min_value=1, max_value=BIGGEST_ID, required=False, label="Session")
    before = forms.IntegerField(min_value=1, max_value=BIGGEST_ID, required=False, widget=forms.HiddenInput)


class SelectionForm(Selection):
    """The selection of a bulk action on memories."""

    action = forms.ChoiceField(
        choices=[*((name, action.label) for name, action in BULK_ACTIONS.items()), ("export", "Export")],
        required=False,
    )
    drawn = TimeField(required=False)

    def clean_drawn(self) -> datetime | None:
        """Return when the page was drawn; the latest time where a row was drawn again since."""
        data: Any = self.data
        times = [self.fields["drawn"].clean(text) for text in data.getlist("drawn")]
        return max(filter(None, times), default=None)


class AnswersForm(forms.Form):
    """The values that a bulk action on `rows` needs, made from its `params`; a target is chosen among `sample`."""

    def __init__(self, action: BulkAction, rows: QuerySet[Memory], sample: list[Memory], data: Any = None) -> None:
        super().__init__(data, auto_id="bulk-%s")
        for param in action.params:
            if param.kind == "confidence":
                now = rows.order_by().aggregate(Avg("confidence"), Min("confidence"), Max("confidence"))
                mean, least, most = (round(value or 0.0, DECIMALS) for value in now.values())
                self.fields[param.name] = forms.FloatField(
                    label=param.label,
                    initial=mean,
                    widget=slider("bulk-confidence-shown"),
                    help_text=f"Now {least:.2f}" + (f" to {most:.2f}, {mean:.2f} on average." if most > least else "."),
                )
            elif param.kind == "memory":
                choices = [(row.pk, row.observation) for row in sample]
                self.fields[param.name] = forms.TypedChoiceField(
                    label="Which memory stays?",
                    choices=choices,
                    coerce=int,
                    initial=choices[0][0] if choices else None,
                    widget=forms.RadioSelect,
                )
            elif param.kind == "category":
                self.fields[param.name] = forms.ChoiceField(
                    label=param.label, required=False, choices=[("", "it stays"), *categories()]
                )
            elif param.kind == "service":
                self.fields[param.name] = forms.CharField(
                    label=param.label, required=False, max_length=64, empty_value=None
                )
            else:
                self.fields[param.name] = forms.CharField(
                    label=param.label, required=False, empty_value=None, widget=forms.Textarea(attrs={"rows": 2})
                )
        self.fields["reason"] = forms.CharField(
            label="Why", required=False, max_length=500, help_text="Recorded in the history."
        )

    def answers(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
