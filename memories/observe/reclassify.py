"""Choose the categories of memories of the knowledge taxonomy anew, for a new version of it.

A memory of the current version is left alone, so a run that was killed goes on where it was. A category that a person
chose stays, unless the taxonomy has it no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

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
    done = Reclassified(due=len(ids))
    tell = progress or (lambda _: None)
    unsure: list[int] = []
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        said = _said(batch)
        chosen = {row.pk: decide(row.observation, said.get(row.pk, "")) for row in Memory.objects.filter(pk__in=batch)}
        kept = _chosen_by_people(batch)
        unsure += [pk for pk, category in chosen.items() if category is None and pk not in kept]
        _write(batch, chosen, kept, done, dry_run=dry_run, by=by, at=when)
        tell(done)
    for start in range(0, len(unsure), MOST):
        batch = unsure[start : start + MOST]
        texts = dict(Memory.objects.filter(pk__in=batch).order_by("pk").values_list("pk", "observation"))
        answer = ask_classifier(list(texts.values())) if not (dry_run or done.why) else []
        if isinstance(answer, Unavailable):
            done.why = answer.why
            answer = []
        if not answer:
            done.waiting += len(texts)
            continue
        found = {pk: category if category.slug else None for pk, category in zip(texts, answer, strict=True)}
        done.waiting += sum(category is None for category in found.values())
        _write(batch, found, set(), done, dry_run=dry_run, by=by, at=when, texts=texts)
        tell(done)
    return done


def _write(
    ids: Sequence[int],
    chosen: dict[int, Category | None],
    kept: set[int],
    done: Reclassified,
    *,
    dry_run: bool,
    by: str,
    at: datetime,
    texts: dict[int, str] | None = None,
) -> None:
    """Write the categories of one batch. A memory that was reclassified or given another text since is left alone."""
    with writing():
        changes = []
        rows = Memory.objects.select_for_update(of=("self",)).filter(pk__in=ids, taxonomy_version__lt=TAXONOMY_VERSION)
        for row in rows.order_by("pk"):
            category = chosen.get(row.pk)
            if row.pk in kept and row.category in KNOWLEDGE.categories:
                category = None
                done.people += 1
            elif category is None or (texts and texts[row.pk] != row.observation):
                continue
            new = {"taxonomy_version": TAXONOMY_VERSION, "category": category.slug if category else row.category}
            if category is not None:
                _count(done.by, str(category.by))
                done.changed += new["category"] != row.category
                done.same += new["category"] == row.category
                if new["category"] != row.category:
                    _count(done.moves, f"{row.category} → {category.slug}")
            changes.append((row, Change.EDITED, new, _why(category, by, at)))
        if not dry_run:
            write_all(changes)


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _why(category: Category | None, by: str, at: datetime) -> Why:
    if category is None:
        return Why(by, at, "A person chose its category.", {RECLASSIFIED: {"by": "person"}})
    reason = f"Version {TAXONOMY_VERSION} of the taxonomy: {category.by.label}, {category.confidence:.2f}."
    return Why(by, at, reason, {RECLASSIFIED: {"by": category.by, "confidence": category.confidence}})


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
