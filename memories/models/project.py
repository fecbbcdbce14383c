"""Projects. A memory with a project is limited to it; one without is global."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from claudeops.lib.masked_fields import MaskedCharField, MaskedTextField
from memories.taxonomy import PROJECT

LONGEST_LIFETIME = 3650
"""Days."""
LONGEST_PATH = 500
MOST_IN_PROMPT = 100
"""Memories."""
LARGEST_BUDGET = 100_000
"""Tokens."""


class UsedMeans(models.TextChoices):
    """What counts as a use of a memory by a session."""

    NAMED = "named", "the session named it"
    INJECTED = "injected", "it was in the session's prompt"


def checked_lifetimes(value: Any) -> None:
    """Raise ValidationError unless `value` maps categories of the project taxonomy to days, or to null for never."""
    if not isinstance(value, Mapping):
        raise ValidationError('Give an object of days by type, such as {"warning": 90, "context": null}.')
    for name, days in value.items():
        if name not in PROJECT.categories:
            raise ValidationError(f"{str(name)[:40]!r} is no type; allowed are {', '.join(PROJECT.categories)}.")
        if days is None:
            continue
        if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= LONGEST_LIFETIME:
            raise ValidationError(f"{name} expires after 1 to {LONGEST_LIFETIME:,} days, or never (null).")


class Project(models.Model):
    """`default_expiry` has the days after which its memories expire, by type (null: never).

    A type that is missing has the taxonomy's lifetime. `memory_budget` is in tokens (characters / 4).
    """

    slug = models.SlugField(max_length=64, unique=True)
    name = MaskedCharField(max_length=200, blank=True, default="")
    description = MaskedTextField(blank=True, default="")
    default_expiry = models.JSONField(
        default=dict,
        blank=True,
        validators=[checked_lifetimes],
        help_text="Days by type, or null for never; a type that is missing has the default.",
    )
    path = MaskedCharField(
        "repository path", max_length=LONGEST_PATH, blank=True, default="", help_text="Where its files are."
    )
    memories_in_prompt = models.PositiveSmallIntegerField(
        "memories in a prompt",
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_IN_PROMPT)],
        help_text=f"How many of its memories a prompt has at most, 1 to {MOST_IN_PROMPT}.",
    )
    memory_budget = models.PositiveIntegerField(
        "memory budget",
        default=500,
        validators=[MaxValueValidator(LARGEST_BUDGET)],
        help_text=f"Tokens of a prompt for its memories, 0 to {LARGEST_BUDGET:,}.",
    )
    used_means = models.CharField(
        "used means",
        max_length=8,
        default=UsedMeans.NAMED,
        choices=UsedMeans.choices,
        help_text="What counts as a use, which raises or lowers a memory's confidence by the session's outcome.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "projects"
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """Refuse an empty list or text as `default_expiry`, which the field would take for blank."""
        try:
            checked_lifetimes(self.default_expiry)
        except ValidationError as error:
            raise ValidationError({"default_expiry": error.messages}) from None

    def lifetime(self, category: str) -> timedelta | None:
        """Return how long a memory of this type lives; None for ever."""
        if category in self.default_expiry:
            days = self.default_expiry[category]
            return None if days is None else timedelta(days=days)
        return PROJECT.expires.get(category)
