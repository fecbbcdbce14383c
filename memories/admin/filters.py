"""The list filters of the memories' pages. Each narrows by what an index serves, or by few values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import CharField, F, QuerySet
from django.db.models.functions import Cast

from claudeops.lib.admin_lists import age_filter, choice_filter, distinct_values
from memories.models import Change, Inactive, Memory, Project, Source, Verdict
from memories.taxonomy import TAXONOMIES


def _by_status(rows: QuerySet[Any], value: str) -> QuerySet[Any]:
    if value == "held":
        return rows.filter(verdict=Verdict.HOLD).exclude(inactive_reason=Inactive.OPERATOR)
    if value == "persistent":
        return rows.filter(persistent=True)
    return rows.filter(verdict=Verdict.ALLOW, active=value == "active")


StatusFilter = choice_filter(
    "status",
    "status",
    lambda: [
        ("active", "active"),
        ("inactive", "inactive"),
        ("held", "held for review"),
        ("persistent", "persistent"),
    ],
    _by_status,
)

# Lower bound included, upper bound excluded; what is inactive below 0.3 in the ops taxonomy is "fading" here.
BANDS = {"strong": (0.8, 1.01), "fair": (0.5, 0.8), "weak": (0.3, 0.5), "fading": (0.0, 0.3)}

COMMON = 0.5
"""From here on a band holds so many of the rows that going through them in their order is quicker than finding them
by the index on confidence and sorting them: the `+ 0.0` keeps SQLite from doing that (5 s of a million rows)."""


def _by_band(rows: QuerySet[Any], value: str) -> QuerySet[Any]:
    low, high = BANDS[value]
    if low >= COMMON:
        return rows.alias(strength=F("confidence") + 0.0).filter(strength__gte=low, strength__lt=high)
    return rows.filter(confidence__gte=low, confidence__lt=high)


ConfidenceFilter = choice_filter(
    "confidence",
    "confidence",
    lambda: [
        ("strong", "0.8 and above"),
        ("fair", "0.5 to 0.8"),
        ("weak", "0.3 to 0.5"),
        ("fading", "below 0.3"),
    ],
    _by_band,
)


def _used(column: str) -> list[tuple[str, str]]:
    return [(name, name) for name in distinct_values(Memory, column)]


def category_groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """Every category under its taxonomy, for a grouped choice."""
    return [(slug, [(name, name) for name in taxonomy.categories]) for slug, taxonomy in TAXONOMIES.items()]


CategoryFilter = choice_filter(
    "category", "category", lambda: _used("category"), lambda rows, value: rows.filter(category=value)
)


def _by_taxonomy(rows: QuerySet[Any], value: str) -> QuerySet[Any]:
    """There are four; as above, the cast keeps SQLite from finding a quarter of all rows by index, to sort them."""
    return rows.alias(vocabulary=Cast("taxonomy", CharField())).filter(vocabulary=value)


TaxonomyFilter = choice_filter("taxonomy", "taxonomy", lambda: _used("taxonomy"), _by_taxonomy)
SourceFilter = choice_filter(
    "who said it", "source", lambda: Source.choices, lambda rows, value: rows.filter(source=value)
)
KindFilter = choice_filter("what", "kind", lambda: Change.choices, lambda rows, value: rows.filter(kind=value))


def _projects() -> Iterable[tuple[str, str]]:
    slugs = list(Project.objects.order_by("slug").values_list("slug", flat=True)[:100])
    return [("none", "no project"), *((slug, slug) for slug in slugs)] if slugs else []


ProjectFilter = choice_filter(
    "project",
    "project",
    _projects,
    lambda rows, value: rows.filter(project=None) if value == "none" else rows.filter(project__slug=value),
)

ConfirmedFilter = age_filter("updated_at", "last confirmed")
WhenFilter = age_filter("at", "when")
