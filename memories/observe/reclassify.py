"""Choose the categories of memories of the knowledge taxonomy anew, for a new version of it.

A memory of the current version is left alone, so a run that was killed goes on where it was. A category that a person
chose stays, unless the taxonomy has it no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memories.lifecycle.bulk_write import BATCH, write_all
from memories.lifecycle.lock import writing
from memories.lifecycle.write import Why
from memories.llm import Unavailable
from memories.models import By, Change, Fact, Memory, MemoryChange, Source, to_utc
from memories.observe.categories import MOST, Category, ask_classifier, decide
from memories.taxonomy import KNOWLEDGE, TAXONOMY_VERSION

RECLASSIFIED = "reclassified"
"""The key in the evidence of a change that marks it as ours, whoever ran the command."""


@dataclass(slots=True)
class Reclassified:
    """How many memories were `due`, and what became of them.

    `changed` have another category, `same` have the one they had, `people` have one that a person chose. `waiting` need
    the classifier, which gave no answer (`why` says so for people) or was not asked, because it is a dry run. `by`
    counts who decided, `moves` the changes as "from → to".
    """

    due: int = 0
    changed: int = 0
    same: int = 0
    people: int = 0
    waiting: int = 0
    why: str = ""
    by: dict[str, int] = field(default_factory=dict)
    moves: dict[str, int] = field(default_factory=dict)

    def count(self, before: str, category: Category) -> None:
        self.by[category.by] = self.by.get(category.by, 0) + 1
        if category.slug == before:
            self.same += 1
            return
        self.changed += 1
        move = f"{before} → {category.slug}"
        self.moves[move] = self.moves.get(move, 0) + 1


def due() -> list[int]:
    """Return the ids of the memories that a run would look at."""
    rows = Memory.objects.filter(taxonomy=KNOWLEDGE.slug, taxonomy_version__lt=TAXONOMY_VERSION)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def reclassify(
    *, dry_run: bool, by: str, at: datetime | None = None, progress: Callable[[Reclassified], None] | None = None
) -> Reclassified:
    """Give each memory of an older version its category in this one, with a change row each.

    Keywords decide, else the word of the observer that found it, else the classifier, 40 texts to a call. What has no
    answer keeps its version and waits for the next run. With `dry_run` nothing is written and nothing is asked. The
    rows of up to 500 memories are one transaction, after each of which `progress` is called. Call it outside of one.
    """
    when = to_utc(at)
    ids = due()
    run = _Run(by, when, dry_run, Reclassified(due=len(ids)))
    tell = progress or (lambda _: None)
    unsure: list[int] = []
    for start in range(0, len(ids), BATCH):
        unsure += run.by_rules(ids[start : start + BATCH])
        tell(run.done)
    for start in range(0, len(unsure), MOST):
        run.by_classifier(unsure[start : start + MOST])
        tell(run.done)
    return run.done


@dataclass(frozen=True, slots=True)
class _Run:
    by: str
    at: datetime
    dry_run: bool
    done: Reclassified

    def by_rules(self, ids: Sequence[int]) -> list[int]:
        """Write what people, keywords and observers decide; return the memories that they leave open."""
        said, people = _said(ids), _chosen_by_people(ids)
        unsure: list[int] = []

        def choose(row: Memory) -> Category | None:
            found = decide(row.observation, said.get(row.pk, ""))
            if found is None:
                unsure.append(row.pk)
            return found

        self._write(ids, choose, people)
        return unsure

    def by_classifier(self, ids: Sequence[int]) -> None:
        """Ask the classifier about all of `ids` in one call, unless it gave no answer before."""
        done = self.done
        texts = dict(Memory.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "observation"))
        answer: list[Category] | Unavailable = []
        if not self.dry_run and not done.why:
            answer = ask_classifier(list(texts.values()))
        if isinstance(answer, Unavailable):
            done.why = answer.why
        if isinstance(answer, Unavailable) or not answer:
            done.waiting += len(texts)
            return
        found = {pk: category for pk, category in zip(texts, answer, strict=True) if category.slug}
        done.waiting += len(texts) - len(found)
        self._write(list(found), lambda row: found[row.pk] if row.observation == texts[row.pk] else None)

    def _write(
        self, ids: Sequence[int], choose: Callable[[Memory], Category | None], people: Set[int] = frozenset()
    ) -> None:
        """Write one batch. A memory that another run took meanwhile, or that `choose` leaves open, stays as it is."""
        changes, done = [], self.done
        with writing():
            older = Memory.objects.select_for_update(of=("self",)).filter(taxonomy_version__lt=TAXONOMY_VERSION)
            for row in older.filter(pk__in=ids).order_by("pk"):
                new: dict[str, Any] = {"taxonomy_version": TAXONOMY_VERSION}
                if row.pk in people and row.category in KNOWLEDGE.categories:
                    done.people += 1
                    changes.append((row, Change.EDITED, new, self._why(None)))
                elif (category := choose(row)) is not None:
                    done.count(row.category, category)
                    changes.append((row, Change.EDITED, new | {"category": category.slug}, self._why(category)))
            if not self.dry_run:
                write_all(changes)

    def _why(self, category: Category | None) -> Why:
        if category is None:
            return Why(self.by, self.at, "A person chose its category.", {RECLASSIFIED: "a person"})
        reason = f"Version {TAXONOMY_VERSION} of the taxonomy: {category.by.label}, {category.confidence:.2f}."
        return Why(self.by, self.at, reason, {RECLASSIFIED: category.by.label})


def _said(ids: Iterable[int]) -> dict[int, str]:
    """Return by memory what the observer said of its category, last."""
    facts = Fact.objects.filter(memory__in=ids).exclude(said_category="")
    return dict(facts.order_by("pk").values_list("memory_id", "said_category"))


def _chosen_by_people(ids: Iterable[int]) -> set[int]:
    """Return the memories whose category a person chose: in an edit, or when they added it."""
    changes = MemoryChange.objects.filter(memory__in=ids, by=By.PEOPLE, after__has_key="category")
    edited = changes.exclude(kind=Change.CREATED).exclude(evidence__has_key=RECLASSIFIED)
    added = changes.filter(kind=Change.CREATED, memory__source=Source.HUMAN)
    return {pk for rows in (edited, added) for pk in rows.values_list("memory_id", flat=True) if pk is not None}
