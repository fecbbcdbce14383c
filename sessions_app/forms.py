"""What the sessions' pages take in: asking for a run, a place in the list, a place in a log, a cooldown.

Knows no request.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from memories.models import Project
from sessions_app.cooldowns.limits import LONGEST_REASON
from sessions_app.filters import TIERS
from sessions_app.log.entries import HIGHEST
from sessions_app.models import Agent, Remediation

IN_FORCE = "in_force"
LONGEST_TASK = 20_000
MOST_TOKENS = 1_000_000
LONGEST_SEEN = 4000
"""Characters of what a page says it shows: 50 rows need a third of it."""


class RunForm(forms.Form):
    """What an operator asks for when a session is to run now."""

    agent = forms.ModelChoiceField(
        queryset=Agent.objects.only("id", "slug"),
        to_field_name="slug",
        required=False,
        empty_label="none: the tier's own profile",
        label="Agent",
    )
    tier = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Tier")
    prompt = forms.CharField(
        required=False,
        max_length=LONGEST_TASK,
        label="What to do",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "Empty: what the agent always does."}),
    )
    dry_run = forms.BooleanField(required=False, label="Dry run: look only, change nothing")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        allowed = [(str(tier), name) for tier, name in TIERS if tier <= settings.CLAUDEOPS_MAX_TIER]
        tier: Any = self.fields["tier"]
        tier.choices = [("", "the agent's own"), *allowed]
        if settings.CLAUDEOPS_DRY_RUN:
            self.fields["dry_run"].disabled = True
            self.fields["dry_run"].initial = True
            self.fields["dry_run"].label = "Dry run: this house makes no other (CLAUDEOPS_DRY_RUN)"

    def asked(self) -> dict[str, Any]:
        """The arguments of `queue.request_session`. Only of a valid form."""
        given = self.cleaned_data
        return {
            "agent": given["agent"],
            "tier": given["tier"],
            "prompt_task": given["prompt"].strip(),
            "dry_run": given["dry_run"],
        }


class PlaceForm(forms.Form):
    """Where in the list of sessions: older than `before`, or newer than `after` (numbers of sessions)."""

    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    after = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)


class PreviewForm(forms.Form):
    """For which session a preview is, and beside which one's receipt it stands; all optional."""

    tier = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Tier")
    project = forms.ModelChoiceField(
        queryset=Project.objects.order_by("slug"),
        to_field_name="slug",
        required=False,
        empty_label="none: global memories only",
        label="Project",
    )
    budget = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_TOKENS,
        label="Budget in tokens",
        widget=forms.NumberInput(attrs={"placeholder": "the tier's own", "step": "1"}),
    )
    session = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        label="Beside session",
        widget=forms.NumberInput(attrs={"placeholder": "the last one", "step": "1"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="preview-%s")
        tier: Any = self.fields["tier"]
        tier.choices = [("", "the last session's"), *((str(tier), name) for tier, name in TIERS if tier)]


class LogPlaceForm(forms.Form):
    """Where in a log: after a line, or the last ones before a line and above `floor`."""

    after = forms.IntegerField(required=False, min_value=0, max_value=HIGHEST)
    before = forms.IntegerField(required=False, min_value=1, max_value=HIGHEST)
    floor = forms.IntegerField(required=False, min_value=0, max_value=HIGHEST)


class ServiceForm(forms.Form):
    """Whose cooldowns are looked at: one service's, those of services that have one in force, or all; a page at a
    time (`skip` so many)."""

    service = forms.CharField(required=False, max_length=64)
    state = forms.ChoiceField(required=False, choices=[("", "all"), (IN_FORCE, "in force")])
    skip = forms.IntegerField(required=False, min_value=0, max_value=100_000)


class ClearForm(forms.Form):
    """Which cooldown is cleared, and why."""

    service = forms.CharField(max_length=64)
    action = forms.ChoiceField(required=False, choices=[("", "restart and redeployment"), *Remediation.choices])
    reason = forms.CharField(
        max_length=LONGEST_REASON, error_messages={"required": "Say why it may be done again: the reason is kept."}
    )
