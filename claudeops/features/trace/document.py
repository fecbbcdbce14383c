"""The answer of a trace: filled by the modules that read rows, shown as a document, as text, and by the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from claudeops.features.trace.ranking import Ranking, Shown, around
from claudeops.features.trace.steps import End, Link, Name, Seen, Step, sentence, steps_of, would_have
from claudeops.lib import humanize
from memories.models import Memory
from sessions_app.models import Session


@dataclass(frozen=True, slots=True)
class Near:
    """A memory near a text: `likeness` 0..1 is its share of the words, or its cosine if that is higher."""

    memory: Memory
    likeness: float
    is_it: bool


@dataclass(slots=True)
class Trace:
    """At which step what was `asked` for ended, what was `seen` of each step, and what its sentence names (`facts`).

    `changes` are clauses that would have told it, each computed; `ranking` is the block that it found no room in,
    `word` what the task might have said; `needs_tokens`: a larger budget would have done. `actions` are what a person
    can do now.
    """

    asked: str
    session: Session | None = None
    memory: Memory | None = None
    end: End = End.KNOWN
    facts: dict[str, Any] = field(default_factory=dict)
    seen: dict[Name, Seen] = field(default_factory=dict)
    others: Sequence[Near] = ()
    changes: Sequence[str] = ()
    ranking: Ranking | None = None
    word: str = ""
    needs_tokens: bool = False
    actions: Sequence[Link] = ()
    notes: list[str] = field(default_factory=list)

    def ended(self, end: End, **facts: Any) -> None:
        """Note where it ended, with what the sentence names of that."""
        self.end, self.facts = end, facts

    @property
    def sentence(self) -> str:
        return sentence(self.end, **self.facts)

    @property
    def more(self) -> str:
        return would_have(self.changes)

    @property
    def steps(self) -> tuple[Step, ...]:
        return steps_of(self.seen, self.end)

    @property
    def ended_at(self) -> int:
        """The number of the step at which it ended, from 1; 0 when it did not end."""
        return list(Name).index(self.end.step) + 1 if self.end.step else 0

    @property
    def is_good(self) -> bool:
        return self.end.step is None

    @property
    def ranks(self) -> list[Shown]:
        """Who came before it."""
        return around(self.ranking, self.memory.pk) if self.ranking and self.memory else []

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "asked": self.asked,
            "end": self.end.code,
            "sentence": self.sentence,
            "would_have": list(self.changes),
            "memory": self.memory.pk if self.memory else None,
            "session": self.session.pk if self.session else None,
            "steps": [
                {
                    "step": step.name.value,
                    "outcome": step.outcome.value,
                    "text": step.seen.text,
                    "note": step.seen.note,
                    "at": step.seen.at.isoformat() if step.seen.at else None,
                }
                for step in self.steps
            ],
            "ranking": [
                {"rank": row.rank, "memory": row.row.memory_id, "score": round(row.row.score, 4), "tokens": row.tokens}
                for row in self.ranks
                if row.row
            ],
            "nearest": [
                {"memory": one.memory.pk, "text": one.memory.observation, "likeness": round(one.likeness, 3)}
                for one in self.others
            ],
            "notes": self.notes,
        }

    def as_text(self) -> str:
        """Return the sentence, the eight steps below it, and the ranking around the memory, for a terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.sentence
        if self.more:
            yield self.more
        yield ""
        for step in self.steps:
            at = f" ({humanize.exact(step.seen.at)})" if step.seen.at else ""
            yield f"{step.label:<10}  {step.outcome.sign:<5}  {step.seen.text}{at}"
            if step.seen.note:
                yield f"{'':<19}{step.seen.note}"
        if self.ranking:
            yield ""
            yield f"{self.ranking.told:,} of {self.ranking.eligible:,} were told, in {self.ranking.budget:,} tokens:"
        for row in self.ranks:
            if row.is_cut:
                yield "      ---- the budget ends here ----"
            elif row.row:
                mark = "*" if row.is_it else " "
                yield f"{mark} {row.rank:>3}  {row.row.score:.2f}  {row.tokens:>4} tokens  {row.row.observation[:80]}"
        for one in self.others:
            yield f"Near it: memory {one.memory.pk} ({one.likeness:.2f}): {one.memory.observation[:120]}"
        yield from self.notes
