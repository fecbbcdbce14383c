"""Learn the relevance of project memories from the outcomes of the sessions that used them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from memories.lifecycle.credit import Adjustment, Outcomes, adjust, base_rate
from memories.models import Memory, Project
from memories.taxonomy import PROJECT
from sessions_app.models import UsedMemory


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned in one project. `base` is the share of decided uses that helped; 0.0: nothing to learn."""

    project: str
    base: float
    adjustments: list[Adjustment]


def adjust_relevance(
    project: Project | None = None, *, also_set: bool = False, dry_run: bool = False, at: datetime | None = None
) -> list[Learned]:
    """Learn in one project, or in all of them. See `memories.lifecycle.credit` for the formula."""
    found = []
    for one in [project] if project else Project.objects.order_by("slug"):
        outcomes = outcomes_in(one)
        base = base_rate(list(outcomes.values()))
        made = adjust(outcomes, base, also_set=also_set, dry_run=dry_run, at=at) if base else []
        found.append(Learned(one.slug, base, made))
    return found


def outcomes_in(project: Project) -> dict[int, Outcomes]:
    """Return the outcomes of a project's memories that were used by a session which completed or failed."""
    ours = Memory.objects.filter(project=project, taxonomy=PROJECT.slug).order_by().values("pk")
    rows = UsedMemory.objects.filter(helped__isnull=False, memory_id__in=ours).order_by()
    counted = rows.values_list("memory_id").annotate(helped_by=Count("pk", filter=Q(helped=True)), decided=Count("pk"))
    return {pk: Outcomes(helped, decided) for pk, helped, decided in counted}
