"""Agents: the profiles that sessions run with."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedTextField
from sessions_app.errors import AgentNotFound
from sessions_app.schedule import cron_error


class Runner(models.TextChoices):
    CLAUDE = "claude", "Claude Code CLI"
    REPLAY = "replay", "recorded streams"


class ScheduleKind(models.TextChoices):
    NONE = "none", "on request only"
    INTERVAL = "interval", "at an interval"
    CRON = "cron", "cron expression (UTC)"


class AgentQuerySet(models.QuerySet["Agent"]):
    def scheduled(self) -> AgentQuerySet:
        return self.filter(enabled=True).exclude(schedule_kind=ScheduleKind.NONE)

    def named(self, slug: str) -> Agent:
        """Return the agent of this selection with this slug. Raises AgentNotFound, which names the selected ones."""
        agent = None if "\0" in slug else self.filter(slug=slug).select_related("project").first()
        if agent is None:
            slugs = ", ".join(self.order_by("slug").values_list("slug", flat=True)[:20])
            slugs = slugs or "none yet (add one in the admin)"
            raise AgentNotFound(f"There is no agent {slug!r}.", f"Known agents: {slugs}.")
        return agent


class Agent(models.Model):
    """A profile that sessions run with. Empty fields use the setting for the agent's tier.

    `next_run_at` is when the schedule fires next (UTC). A conditional UPDATE claims it, so one firing is one session
    on any number of hosts.
    """

    slug = models.SlugField(max_length=64, unique=True)
    name = MaskedCharField(max_length=200, blank=True, default="")
    description = MaskedTextField(blank=True, default="")
    enabled = models.BooleanField(default=True)
    project = models.ForeignKey(
        "memories.Project", null=True, blank=True, on_delete=models.PROTECT, related_name="agents"
    )
    tier = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(3)],
        help_text="1 observe, 2 investigate, 3 remediate.",
    )
    runner = models.CharField(max_length=16, default=Runner.CLAUDE, choices=Runner.choices)
    model = models.CharField(max_length=100, blank=True, default="", help_text="Empty = the tier's model.")
    prompt_template = MaskedTextField(
        blank=True,
        default="",
        help_text="Empty = the tier's prompt. A Django template; {{ base }} is the tier's own text.",
    )
    schedule_kind = models.CharField(max_length=16, default=ScheduleKind.NONE, choices=ScheduleKind.choices)
    interval_seconds = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(60)], help_text="Empty = CLAUDEOPS_INTERVAL."
    )
    cron = models.CharField(
        max_length=100, blank=True, default="", help_text="Five fields, UTC: minute hour day month weekday."
    )
    next_run_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_run_at = models.DateTimeField(null=True, blank=True, editable=False)
    allowed_tools = models.JSONField(default=list, blank=True, help_text="A list of tool rules; empty = settings.")
    disallowed_tools = models.JSONField(
        default=list, blank=True, help_text="A list of tool rules, denied in addition to those of the settings."
    )
    max_turns = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    max_budget_usd = models.DecimalField(
        max_digits=10, decimal_places=4, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    memory_budget = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(200_000)],
        help_text="Tokens of memory in its prompt. Empty = CLAUDEOPS_MEMORY_BUDGET; 0 = none.",
    )
    timeout_seconds = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(10)])
    working_directory = models.CharField(max_length=500, blank=True, default="")
    structured_response = models.BooleanField(
        default=True, help_text="Ask for the structured answer (summary, events, memories, escalation)."
    )
    escalates_to = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="escalated_from",
        help_text="The agent that runs an escalation; empty = this agent, one tier higher.",
    )
    replay_stream = models.CharField(
        max_length=500,
        blank=True,
        default="",
        help_text="For the runner of recorded streams: a file, or a folder whose files are played in turn.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        db_table = "agents"
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(condition=Q(tier__gte=1, tier__lte=3), name="agents_tier_1_to_3"),
        ]
        indexes = [
            models.Index(fields=["next_run_at"], condition=Q(enabled=True), name="agents_next_run"),
        ]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        from claudeops.lib.secrets import find  # here: its patterns take long to compile

        if self.schedule_kind == ScheduleKind.CRON:
            problem = cron_error(self.cron)
            if problem:
                raise ValidationError({"cron": problem})
        if self.runner == Runner.REPLAY and not self.replay_stream:
            raise ValidationError({"replay_stream": "A replay agent needs a file or a folder of streams."})
        for name in ("allowed_tools", "disallowed_tools"):
            rules = getattr(self, name)
            if not isinstance(rules, list) or not all(isinstance(rule, str) and rule.strip() for rule in rules):
                raise ValidationError({name: 'Give a JSON list of tool rules, like ["Read", "Bash(docker ps *)"].'})
            if any(find(rule) for rule in rules):  # a masked rule would no longer deny what it names
                text = "A tool rule holds what looks like a credential. Name the tool and its command without it."
                raise ValidationError({name: text})
