"""The form of an agent: one tool rule a line; a prompt template with a syntax error is refused."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template import Template, TemplateSyntaxError

from sessions_app.models import Agent


class RulesField(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField code", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return list(value)
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def validate(self, value: Any) -> None:
        for rule in value:
            if rule.count("(") != rule.count(")"):
                raise ValidationError(f"{rule!r} has an unbalanced parenthesis.")

    def run_validators(self, value: Any) -> None:
        return None

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(initial) != self.to_python(data))


class AgentForm(forms.ModelForm):
    allowed_tools = RulesField(
        required=False, help_text="One a line, like Bash(docker ps *). Empty: CLAUDEOPS_ALLOWED_TOOLS."
    )
    disallowed_tools = RulesField(required=False, help_text="One a line, besides CLAUDEOPS_DISALLOWED_TOOLS.")

    class Meta:
        model = Agent
        fields = "__all__"
        labels = {
            "schedule_kind": "Runs",
            "interval_seconds": "Every … seconds",
            "max_turns": "Turns",
            "max_budget_usd": "Dollars a session",
            "timeout_seconds": "Seconds",
            "memory_budget": "Tokens of memory",
            "replay_stream": "Recorded stream",
        }
        widgets = {
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
            "prompt_template": forms.Textarea(attrs={"rows": 14, "class": "vLargeTextField code"}),
        }

    def clean_prompt_template(self) -> str:
        text = str(self.cleaned_data["prompt_template"])
        try:
            Template(text)
        except TemplateSyntaxError as error:
            raise ValidationError(f"The template cannot be read: {error}.") from error
        return text
