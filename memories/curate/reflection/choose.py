"""Which observations no reflection has shown yet, and whether it is time for one. Times are UTC.

New is what was not shown, or was confirmed or edited since; not by its time alone, because a fact has that of its turn
and may be observed long after.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from memories.curate.reflection.message import MOST_OBSERVATIONS, ShownObservation, fitting
from memories.models import Memory, MemoryFile, Project, Reflection, ReflectionState
from memories.models.memory import UNSHOWN, MemoryQuerySet
from memories.observe.categories import MEANINGS
from memories.taxonomy import KNOWLEDGE, OPS, PROJECT

TAXONOMIES = (KNOWLEDGE.slug, OPS.slug, PROJECT.slug)
EVERY = timedelta(hours=24)
"""After it observations are reflected on, however few; without a new one nothing is asked."""
ENOUGH = 20
"""New observations after which they are reflected on before."""
SECTIONS = {OPS.slug: "operations", PROJECT.slug: "projects"}
"""The section that an observation of another taxonomy belongs to, unless the reflector says otherwise."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Observations for one message, the newest first, as they were at `until`. `more`: others did not fit."""

    memories: tuple[Memory, ...]
    until: datetime
    more: bool


@dataclass(frozen=True, slots=True)
class Due:
    """Whether it is time for a reflection, and why or why not, for people. `new`: at most as many as one shows."""

    is_due: bool
    new: int
    why: str


def choose(project: Project | None, file: MemoryFile | None, at: datetime) -> Choice:
    """Return the observations that the file of a scope was not reflected on, as many as fit into one message."""
    rows = list(_new(project, file, at)[: MOST_OBSERVATIONS + 1])
    count = fitting([shown(one) for one in rows])
    return Choice(tuple(rows[:count]), at, count < len(rows))


def due(project: Project | None, file: MemoryFile | None, at: datetime) -> Due:
    """Say whether a reflection of a scope is due at `at`: enough is new, or something is and the time is over."""
    times = list(_new(project, file, at).values_list("updated_at", flat=True)[:MOST_OBSERVATIONS])
    if not times:
        return Due(False, 0, "nothing is new")
    ended = Reflection.objects.filter(file=file).exclude(done_at=None) if file else Reflection.objects.none()
    last = ended.order_by("-done_at").values_list("done_at", "state").first()
    since, state = last or (times[-1], "")
    assert since is not None  # noqa: S101  # excluded above
    when = f"{since + EVERY:%Y-%m-%d %H:%M} UTC"
    if at >= since + EVERY:
        return Due(True, len(times), f"{len(times)} are new, and 24 hours are over")
    if state == ReflectionState.FAILED:
        return Due(False, len(times), f"the last one failed; the next one is due {when}")
    if len(times) >= ENOUGH:
        return Due(True, len(times), f"{len(times)} are new")
    return Due(False, len(times), f"{len(times)} are new; the next one is due {when}")


def usable(project: Project | None) -> MemoryQuerySet:
    """Return the observations of a scope that may be reflected on: fails closed for what waits for a person."""
    return _allowed().filter(taxonomy__in=TAXONOMIES, project=project)


def shown(memory: Memory) -> ShownObservation:
    """Return a memory as the reflector is shown it."""
    return ShownObservation(
        text=memory.observation if memory.service is None else f"{memory.service}: {memory.observation}",
        section=section_of(memory),
        on=f"{memory.updated_at:%Y-%m-%d}",
        trust=memory.trust,
        confidence=memory.confidence,
        confirmed=memory.merged_count,
    )


def section_of(memory: Memory) -> str:
    """Return the category of knowledge that a memory belongs to."""
    own = memory.category if memory.category in MEANINGS else "operations"
    return SECTIONS.get(memory.taxonomy, own)


def news() -> Counter[str]:
    """Count what is new of each scope, by the project's slug ("" is that of everything). One query."""
    # In the order of its index, and not by the taxonomy in SQL: SQLite would take another one.
    rows = _allowed().filter(UNSHOWN).order_by("project_id", "-updated_at", "-pk")
    return Counter(slug or "" for slug, of in rows.values_list("project__slug", "taxonomy") if of in TAXONOMIES)


def note_shown(row: Reflection) -> None:
    """Note what a reflection has shown, in the transaction that ends it: one that failed has shown nothing."""
    Memory.objects.filter(pk__in=row.observations).update(reflected_at=row.until)


def _new(project: Project | None, file: MemoryFile | None, at: datetime) -> MemoryQuerySet:
    rows = usable(project).filter(updated_at__lte=at).order_by("-updated_at", "-pk")
    return rows if file is None else rows.filter(UNSHOWN)


def _allowed() -> MemoryQuerySet:
    return Memory.objects.active().allowed().trusted().filter(agent=None)
