"""Which observations a file has not been reflected on yet, and whether it is time to. Reads only. Times are UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from memories.curate.reflection.message import MOST_OBSERVATIONS, ShownObservation, fitting
from memories.models import Memory, MemoryFile, Project, Reflection, ReflectionState
from memories.models.memory import MemoryQuerySet
from memories.observe.categories import MEANINGS
from memories.taxonomy import KNOWLEDGE, OPS, PROJECT

TAXONOMIES = (KNOWLEDGE.slug, OPS.slug, PROJECT.slug)
OVERLAP = timedelta(minutes=10)
"""A memory may be committed so long after the time that it bears; what was shown meanwhile is left out by its id."""
SECTIONS = {OPS.slug: "operations", PROJECT.slug: "projects"}
"""The section that an observation of another taxonomy belongs to, unless the reflector says otherwise."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Observations for one message, the newest first. `more`: there are others that did not fit.

    They are all that were last confirmed after `since` (None: ever) and up to `until`, and not shown before.
    """

    memories: tuple[Memory, ...]
    since: datetime | None
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
    chosen = tuple(rows[:count])
    more = count < len(rows)
    # Equal times are not cut apart: what the next one shows is older than all of these, or is left out by its id.
    since = chosen[-1].updated_at if more and chosen else None
    return Choice(chosen, since, at, more)


def due(project: Project | None, file: MemoryFile | None, at: datetime) -> Due:
    """Say whether a reflection of a scope is due at `at`: enough is new, or something is and the time is over."""
    times = list(_new(project, file, at).values_list("updated_at", flat=True)[:MOST_OBSERVATIONS])
    if not times:
        return Due(False, 0, "nothing is new")
    every = timedelta(hours=settings.CLAUDEOPS_REFLECT_EVERY)
    ended = Reflection.objects.filter(file=file).exclude(done_at=None) if file else Reflection.objects.none()
    last = ended.order_by("-done_at").values_list("done_at", "state").first()
    since, state = last or (times[-1], "")
    assert since is not None  # noqa: S101  # excluded above
    when = f"{since + every:%Y-%m-%d %H:%M} UTC"
    if at >= since + every:
        return Due(True, len(times), f"{len(times)} are new, and {settings.CLAUDEOPS_REFLECT_EVERY} hours are over")
    if state == ReflectionState.FAILED:
        return Due(False, len(times), f"the last one failed; the next one is due {when}")
    if len(times) >= settings.CLAUDEOPS_REFLECT_AFTER:
        return Due(True, len(times), f"{len(times)} are new")
    return Due(False, len(times), f"{len(times)} are new; the next one is due {when}")


def usable(project: Project | None) -> MemoryQuerySet:
    """Return the observations of a scope that may be reflected on: fails closed for what waits for a person."""
    rows = Memory.objects.active().allowed().trusted()
    return rows.filter(taxonomy__in=TAXONOMIES, project=project, agent=None)


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


def _new(project: Project | None, file: MemoryFile | None, at: datetime) -> MemoryQuerySet:
    rows = usable(project).filter(updated_at__lte=at).order_by("-updated_at", "-pk")
    if file is None:
        return rows
    done = _done(file)
    for since, until in _covered(done):
        if since is None:  # as a bound of its own, which the index finds
            rows = rows.filter(updated_at__gt=until)
        else:
            rows = rows.exclude(updated_at__lte=until, updated_at__gt=since)
    for one in done:
        # What was shown is left out by its id at the edges: above the covered time, and at its beginning.
        edges = Q(updated_at__gt=one.until - OVERLAP, updated_at__lte=one.until)
        if one.since is not None:
            edges |= Q(updated_at=one.since)
        if one.observations:
            rows = rows.exclude(edges & Q(pk__in=one.observations))
    return rows


def _done(file: MemoryFile) -> Sequence[Reflection]:
    """Return the done reflections that still matter: those since the last one that left nothing over."""
    rows = Reflection.objects.filter(file=file, state=ReflectionState.DONE).only("since", "until", "observations")
    found: list[Reflection] = []
    floor: datetime | None = None
    for one in rows.order_by("-number"):
        if floor is not None and one.until <= floor:
            break
        found.append(one)
        if one.since is None and floor is None:
            floor = one.until - OVERLAP
    return found


def _covered(done: Sequence[Reflection]) -> Iterator[tuple[datetime | None, datetime]]:
    """Yield the spans of time, joined, whose observations were all shown."""
    spans = sorted(
        ((one.since, one.until - OVERLAP) for one in done), key=lambda span: (span[0] is not None, span[0] or span[1])
    )
    current: tuple[datetime | None, datetime] | None = None
    for since, until in spans:
        if current is not None and (since is None or since <= current[1]):
            current = (current[0], max(current[1], until))
            continue
        if current is not None:
            yield current
        current = (since, until)
    if current is not None:
        yield current
