"""What became of each memory that a session was shown: shown, injected, used, helped. Reads; never writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q

from memories.queries import numbers
from sessions_app.models import How, Injected, Session, UsedMemory
from sessions_app.receipts import told_to

COUNTED = 1_000
"""Latest uses of a memory that are counted."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One memory that a session was shown: in its prompt (`injected`), or in the answer to a recall.

    `how` is empty unless it was used; `helped` is None when it was not used, or the session's end says neither.
    """

    memory_id: int
    injected: bool
    how: str = ""
    helped: bool | None = None

    @property
    def used(self) -> str:
        """How it was used, in words; empty when it was not."""
        return str(How(self.how).label) if self.how else ""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a session by memory id, the lowest first. The four counts are of memories."""

    by_memory: dict[int, Fact]

    @property
    def shown(self) -> int:
        return len(self.by_memory)

    @property
    def injected(self) -> int:
        return sum(fact.injected for fact in self.by_memory.values())

    @property
    def used(self) -> int:
        return sum(bool(fact.how) for fact in self.by_memory.values())

    @property
    def helped(self) -> int:
        return sum(fact.helped is True for fact in self.by_memory.values())

    @property
    def recalled(self) -> list[Fact]:
        """Those that were not in its prompt."""
        return [fact for fact in self.by_memory.values() if not fact.injected]


def facts_of(session: Session | int) -> Facts:
    """Return the four facts of every memory that a session was shown. Four queries."""
    pk = session if isinstance(session, int) else session.pk
    injected = set(Injected.objects.filter(session=pk).values_list("memory_id", flat=True))
    used = {row.memory_id: row for row in UsedMemory.objects.filter(session=pk)}
    return Facts(
        {
            one: Fact(
                one, one in injected, used[one].how if one in used else "", used[one].helped if one in used else None
            )
            for one in sorted(told_to(pk) | used.keys())
        }
    )


@dataclass(frozen=True, slots=True)
class Uses:
    """How often the last COUNTED sessions that used a memory say that it helped, did not, or neither."""

    used: int
    helped: int
    failed: int
    capped: bool

    @property
    def words(self) -> str:
        """The counts as a sentence."""
        if not self.used:
            return "No session used it."
        times = "once" if self.used == 1 else f"{self.used:,} times"
        capped = f"Of the last {COUNTED:,} uses: u" if self.capped else "U"
        open_ones = self.used - self.helped - self.failed
        parts = [f"helped {self.helped:,}", f"did not help {self.failed:,}"]
        return f"{capped}sed {times}: {', '.join(parts)}" + (f", not known {open_ones:,}." if open_ones else ".")


def uses_of(memory_id: int) -> Uses:
    rows = UsedMemory.objects.filter(memory_id=memory_id).order_by("-session").values_list("helped", flat=True)
    counts = Counter(rows[:COUNTED])
    used = counts.total()
    return Uses(used, counts[True], counts[False], used == COUNTED)


def counts_of(memories: Collection[int]) -> dict[int, numbers.Uses]:
    """Map the ids of `memories` to all their uses; one that was never used is not among them. One query."""
    rows = UsedMemory.objects.filter(memory_id__in=memories).order_by().values_list("memory_id")
    counted = rows.annotate(used=Count("pk"), helped=Count("pk", filter=Q(helped=True)))
    return {pk: numbers.Uses(used, helped) for pk, used, helped in counted}
