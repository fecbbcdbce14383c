"""What the memories' pages take in: a new memory, an edit, a place in the list, a selection. Knows no request.

Values are checked by the store's own functions, so that a refusal reads alike everywhere; a form saves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from memories import listing
from memories.bulk import BULK_ACTIONS, BulkAction
from memories.capture import fields as stored
from memories.errors import InvalidMemory
from memories.models import Answer, DisagreementKind, Memory, RecallVote
from memories.recall import Question
from memories.recall.profiles import NAMES as PROFILES
from memories.taxonomy import DEFAULT_CONFIDENCE, TAXONOMIES

BIGGEST_ID = 2**63 - 1
ASKED_FROM = [
    ("mcp", "a model, over MCP"),
    ("injection", "a session's beginning"),
    ("page", "the dashboard"),
    ("api", "the API"),
    ("cli", "the command line"),
]
"""The surfaces of a recall, as a person reads them."""
DECIMALS = 2
"""To how many decimals the slider shows a confidence."""


def checked(check: Callable[..., Any], *values: Any) -> Any:
    """What `check` makes of the values; its refusal as a form's error."""
    try:
        return check(*values)
    except InvalidMemory as refusal:
        raise ValidationError(f"{refusal} {refusal.fix}".strip()) from refusal


def slider(shows: str) -> forms.NumberInput:
    widget = forms.NumberInput(attrs={"min": "0", "max": "1", "step": "0.01", "data-shows": shows})
    widget.input_type = "range"
    return widget


def categories() -> list[tuple[str, list[tuple[str, str]]]]:
    return [(slug, [(name, name) for name in taxonomy.categories]) for slug, taxonomy in TAXONOMIES.items()]


class AddForm(forms.Form):
    """What a person has found out. The confidence is clamped by the store."""

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

    def clean_observation(self) -> str:
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def clean_service(self) -> str | None:
        service: str | None = checked(stored.checked_service, self.cleaned_data["service"])
        return service

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        taxonomy = TAXONOMIES[cleaned.get("taxonomy") or "ops"]
        if "category" in cleaned:
            try:
                checked(stored.checked_category, cleaned["category"], taxonomy)
            except ValidationError as error:
                self.add_error("category", error)
        return cleaned


class EditForm(forms.Form):
    """An edit in place. What is not sent stays; `seen` is the latest change the person saw."""

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

    def __init__(self, memory: Memory, data: Any = None, *, seen: int = 0) -> None:
        self.memory = memory
        initial = {
            "observation": memory.observation,
            "confidence": round(memory.confidence, DECIMALS),
            "active": "true" if memory.active else "false",
            "seen": seen,
        }
        super().__init__(data, initial=initial, auto_id=f"memory-{memory.pk}-%s")
        self.fields["confidence"].widget = slider(f"memory-{memory.pk}-confidence-shown")

    def clean_observation(self) -> str:
        if "observation" not in self.data:
            return ""
        return str(checked(stored.checked_observation, self.cleaned_data["observation"]))

    def wants_active(self) -> bool:
        """Whether the box is ticked, as it was sent or as the memory is."""
        return bool(self["active"].value() == "true")

    def changes(self) -> dict[str, Any]:
        """The arguments of `verbs.edit`. Only of a valid form.

        A slider shows two decimals: what it was not moved from is not set to them.
        """
        given: dict[str, Any] = {}
        if "observation" in self.data:
            given["observation"] = self.cleaned_data["observation"]
        confidence = self.cleaned_data["confidence"]
        if confidence is not None and stored.checked_confidence(confidence) != round(self.memory.confidence, DECIMALS):
            given["confidence"] = confidence
        if self.cleaned_data["active"] is not None:
            given["active"] = self.cleaned_data["active"]
        return given


class RollBackForm(forms.Form):
    """Back to an earlier state: why, and the latest change the person saw."""

    reason = forms.CharField(label="Why", required=False, max_length=500, help_text="Goes into the history.")
    seen = forms.IntegerField(min_value=0, max_value=BIGGEST_ID, widget=forms.HiddenInput)


class RecallForm(forms.Form):
    """A question with what narrows it; every field but the query may stay empty."""

    query = forms.CharField(label="Search what is known", max_length=10_000, strip=True)
    project = forms.CharField(label="Project", max_length=64, required=False, help_text="A slug, or global.")
    service = forms.CharField(label="Service", max_length=64, required=False)
    category = forms.ChoiceField(label="Category", required=False)
    taxonomy = forms.ChoiceField(label="Taxonomy", required=False)
    agent = forms.CharField(label="Agent", max_length=64, required=False)
    tags = forms.CharField(label="Tags", max_length=500, required=False, help_text="All of these, with commas.")
    profile = forms.ChoiceField(label="Profile", choices=[(name, name) for name in PROFILES], required=False)
    limit = forms.IntegerField(label="At most", min_value=1, max_value=100, required=False)
    as_of = forms.DateTimeField(
        label="As it was known (UTC)",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    include_hold = forms.BooleanField(label="Also what waits for review", required=False)

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="recall-%s", initial={"profile": "balanced"})
        names = sorted({name for taxonomy in TAXONOMIES.values() for name in taxonomy.categories})
        for field, values in (("category", names), ("taxonomy", list(TAXONOMIES))):
            choice = self.fields[field]
            assert isinstance(choice, forms.ChoiceField)  # noqa: S101
            choice.choices = [("", "any"), *((name, name) for name in values)]

    def question(self) -> Question:
        """Only of a valid form."""
        given = self.cleaned_data
        return Question(
            query=given["query"],
            project=given["project"] or None,
            agent=given["agent"] or None,
            service=given["service"] or None,
            category=given["category"] or None,
            taxonomy=given["taxonomy"] or None,
            tags=tuple(tag.strip() for tag in given["tags"].split(",") if tag.strip()),
            limit=given["limit"],
            profile=given["profile"] or "balanced",
            as_of=given["as_of"],
            include_hold=given["include_hold"],
        )

    def narrows(self) -> bool:
        """Whether something beside the query is asked for, so that it is shown unfolded."""
        return any(
            str(self[name].value() or "") not in ("", "balanced", "False") for name in self.fields if name != "query"
        )


class MarkForm(forms.Form):
    """A word on one hit: right, wrong, or nothing to take it back."""

    memory = forms.IntegerField(min_value=1, max_value=BIGGEST_ID)
    vote = forms.ChoiceField(choices=RecallVote.choices, required=False)


class AskedForm(forms.Form):
    """Which of the questions are shown."""

    surface = forms.ChoiceField(choices=[("", "anywhere"), *ASKED_FROM], required=False, label="Asked from")
    session = forms.IntegerField(min_value=1, max_value=BIGGEST_ID, required=False, label="Session")
    before = forms.IntegerField(min_value=1, max_value=BIGGEST_ID, required=False, widget=forms.HiddenInput)


class PlaceForm(forms.Form):
    """How the list is sorted, and where in it: after a row or before one."""

    sort = forms.ChoiceField(choices=[(key, key) for key in listing.SORTS], required=False)
    after = forms.CharField(required=False, max_length=200)
    before = forms.CharField(required=False, max_length=200)

    def found(self) -> tuple[listing.Sort, listing.Place | None, listing.Place | None]:
        """What the address says; what it says wrongly is the beginning of the list."""
        self.is_valid()
        sort = listing.SORTS[self.cleaned_data.get("sort") or listing.FIRST]
        return sort, self._place(sort, "after"), self._place(sort, "before")

    def _place(self, sort: listing.Sort, name: str) -> listing.Place | None:
        try:
            return listing.read_place(sort, self.cleaned_data.get(name) or "")
        except ValueError:
            return None


class SelectionForm(forms.Form):
    """What a bulk action is about: the ids that were ticked, or all that the address's filters match.

    `up_to` and `count` are what was shown when it was confirmed.
    """

    action = forms.ChoiceField(
        choices=[*((name, action.label) for name, action in BULK_ACTIONS.items()), ("export", "Export")],
        required=False,
    )
    all_matching = forms.BooleanField(required=False)
    confirmed = forms.BooleanField(required=False)
    up_to = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST_ID)
    count = forms.IntegerField(required=False, min_value=0)

    def ids(self) -> list[int]:
        given: Any = self.data  # a QueryDict: it holds several values of one name
        found = [value for value in given.getlist("id") if value.isdecimal() and len(value) < 19]
        return [int(value) for value in found]


class AnswersForm(forms.Form):
    """What a bulk action asks for, made from its `params`; a target is chosen among `rows`."""

    def __init__(self, action: BulkAction, rows: list[Memory], data: Any = None) -> None:
        super().__init__(data, auto_id="bulk-%s")
        for param in action.params:
            if param.kind == "confidence":
                self.fields[param.name] = forms.FloatField(
                    label=param.label, initial=DEFAULT_CONFIDENCE, widget=slider("bulk-confidence-shown")
                )
            elif param.kind == "memory":
                choices = [(row.pk, row.observation) for row in rows]
                self.fields[param.name] = forms.TypedChoiceField(
                    label="Which one stays?",
                    choices=choices,
                    coerce=int,
                    initial=choices[0][0] if choices else None,
                    widget=forms.RadioSelect,
                )
            else:
                self.fields[param.name] = forms.CharField(
                    label=param.label, required=False, empty_value=None, widget=forms.Textarea(attrs={"rows": 2})
                )
        self.fields["reason"] = forms.CharField(
            label="Why", required=False, max_length=500, help_text="Goes into the history."
        )

    def answers(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}


class InboxForm(forms.Form):
    """Which questions of the inbox, and from where on."""

    kind = forms.ChoiceField(choices=[("", "all"), *DisagreementKind.choices], required=False)
    answered = forms.BooleanField(required=False)
    after = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST_ID)


class AnswerForm(forms.Form):
    """An answer to a question, with the changes that the page knew of."""

    answer = forms.ChoiceField(choices=Answer.choices)
    observation = forms.CharField(required=False, strip=True)
    seen_older = forms.IntegerField(min_value=0, max_value=BIGGEST_ID)
    seen_newer = forms.IntegerField(min_value=0, max_value=BIGGEST_ID)
