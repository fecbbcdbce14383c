"""Suggestions about agents' files: what could be joined, what would leave, what several agents know, where a text goes.

Pure: rows in, suggestions with their reasons out, in an order that the same rows always give. `tidy` carries them out.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from memories.files.document import Document, Section
from memories.files.limits import Item, Limits, fit
from memories.files.sections import OTHER_TYPE, SectionSet
from memories.matching import Kind, may_be_one, relation
from memories.models import AgentFileEntry
from memories.recall.query import index_terms

ROUTES = Path(__file__).with_name("routes.toml")
LEAST_SHARED = 0.3
"""Share of the terms of two texts (Jaccard) from which they are compared: below, the matcher never finds them alike."""
COMMON = 200
"""A term that more lines than this have brings no two of them together."""
OF_PROJECT = {"mistake": "warning", "context": "context", "learning": "learning"}
"""The type that an agent's memory has as one of its project; any other is a pattern."""
LEAST_LIKE = 1.0
"""Weight of shared terms below which a text says nothing about which agent it is for."""
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Line:
    """A memory of an agent, in its file or not. `since` is aware UTC."""

    memory_id: int
    agent: str
    category: str
    section: str
    text: str
    confidence: float
    since: datetime

    @classmethod
    def of(cls, entry: AgentFileEntry) -> Line | None:
        """Return the line of an entry with its memory and file loaded; None where the memory was deleted."""
        memory = entry.memory
        if memory is None:
            return None
        return cls(
            memory.pk,
            entry.file.agent,
            memory.category,
            entry.section,
            memory.observation,
            memory.confidence,
            entry.since,
        )

    @property
    def rank(self) -> tuple[float, datetime, int]:
        """Order the best first: the surest, then the oldest."""
        return (-self.confidence, self.since, self.memory_id)


@dataclass(frozen=True, slots=True)
class Join:
    """Entries of one agent and type that say nearly the same: `others` could be merged into `target`."""

    target: Line
    others: tuple[Line, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Shared:
    """What several agents know alike: `best` could become a memory of the project, of type `category`."""

    best: Line
    others: tuple[Line, ...]
    category: str

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(sorted({self.best.agent, *(line.agent for line in self.others)}))


@dataclass(frozen=True, slots=True)
class Leaving:
    """An entry that a file has to lose to be within its limits, and why."""

    line: Line
    why: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where a text would go: an agent, a type, its section, and why."""

    agent: str
    category: str
    section: str
    why: str


def alike(one: str, other: str) -> str:
    """Say why two texts say the same, or nearly; "" when they do not. What may contradict is not alike."""
    comparison = relation(one, other)
    if comparison.kind is Kind.REINFORCES:
        return comparison.why
    opposed = comparison.evidence.keys() & {"stance", "order"}
    if comparison.kind is Kind.DISTINCT and may_be_one(comparison.evidence) and not opposed:
        return f"They share {comparison.score:.0%} of their content."
    return ""


def joins(lines: Sequence[Line]) -> list[Join]:
    """Return what could be joined: entries of one agent and type; each is in one suggestion at most."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.agent, line.category), []).append(line)
    suggestions = []
    for _, group in sorted(groups.items()):
        for best, others, why in _stars(group):
            suggestions.append(Join(best, others, why))
    return suggestions


def cross_ref(lines: Sequence[Line], known: Collection[str] = ()) -> list[Shared]:
    """Return what at least two agents know alike, by the number of agents. What `known` says is known already."""
    suggestions = []
    for best, others, _ in _stars(lines, across=True):
        if not any(alike(text, best.text) for text in known if _near(_terms(text), _terms(best.text))):
            suggestions.append(Shared(best, others, OF_PROJECT.get(best.category, "pattern")))
    return sorted(suggestions, key=lambda one: (-len(one.agents), one.best.rank))


def _stars(lines: Sequence[Line], *, across: bool = False) -> Iterator[tuple[Line, tuple[Line, ...], str]]:
    """Yield the best line of each group, those alike to it, and why the first of them is. `across`: of other agents."""
    ordered = sorted(lines, key=lambda line: line.rank)
    terms = [_terms(line.text) for line in ordered]
    holding: dict[str, list[int]] = {}
    for number, own_terms in enumerate(terms):
        for term in own_terms:
            holding.setdefault(term, []).append(number)
    members: set[int] = set()
    for number, best in enumerate(ordered):
        if number in members:
            continue
        shared = Counter(
            other for term in terms[number] if len(holding[term]) <= COMMON for other in holding[term] if other > number
        )
        others, why = [], ""
        for other in sorted(shared):
            line = ordered[other]
            if other in members or (across and line.agent == best.agent) or not _near(terms[number], terms[other]):
                continue
            if reason := alike(best.text, line.text):
                members.add(other)
                others.append(line)
                why = why or reason
        if others:
            members.add(number)
            yield best, tuple(others), why


def _terms(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def _near(one: Collection[str], other: Collection[str]) -> bool:
    both = len(set(one) & set(other))
    return both >= LEAST_SHARED * (len(one) + len(other) - both)


def leaving(document: Document, lines: Sequence[Line], limits: Limits) -> list[Leaving]:
    """Return what a file that is larger than its limits would lose to be within them again, in the order of leaving.

    Prose, headings and entries without a memory stay: what they take is not there for entries.
    """
    entries = {(entry.section.casefold(), entry.text): entry for entry in document.entries}
    items, size = [], 0
    for line in lines:
        entry = entries.get((line.section.casefold(), line.text))
        if entry is None:
            continue
        items.append(Item(line, line.section, line.text, line.confidence, line.since))
        size += sum(len((text + end).encode()) for text, end in document.lines[entry.start : entry.end])
    gone = fit(items, limits, limits.bytes - (document.size - size))
    return [Leaving(line, why) for line, why in gone.items()]


def empty_sections(document: Document, kept: Collection[str]) -> list[Section]:
    """Return the sections below whose heading nothing stands, not even a comment; those `kept` by name are none."""
    wanted = {name.casefold() for name in kept}
    starts = [section.line for section in document.sections if section.line >= 0]
    sections = []
    for section in document.sections:
        if section.line < 0 or section.name.casefold() in wanted:
            continue
        end = next((line for line in starts if line > section.line), len(document.lines))
        if not any(text.strip() for text, _ in document.lines[section.line + 1 : end]):
            sections.append(section)
    return sections


def without_sections(document: Document, sections: Collection[Section]) -> Document:
    """Return the document without these empty sections."""
    gone: set[int] = set()
    for section in sections:
        gone.add(section.line)
        line = section.line + 1
        while line < len(document.lines) and not document.lines[line][0].strip():
            gone.add(line)
            line += 1
    lines = [line for number, line in enumerate(document.lines) if number not in gone]
    while len(lines) > 1 and not lines[-1][0].strip() and gone:
        lines.pop()
    return Document(tuple(lines), document.bom)


def repeated(document: Document) -> list[int]:
    """Return the numbers (by `document.entries`) of entries that repeat an earlier one of their section."""
    keys: set[tuple[str, str]] = set()
    numbers = []
    for number, entry in enumerate(document.entries):
        key = (entry.section.casefold(), entry.text.casefold())
        if key in keys:
            numbers.append(number)
        keys.add(key)
    return numbers


@cache
def _routes() -> Mapping[str, Mapping[str, frozenset[str]]]:
    table = tomllib.loads(ROUTES.read_text(encoding="utf-8"))
    return {
        part: {name: frozenset(term for word in words for term in index_terms(word)) for name, words in rows.items()}
        for part, rows in table.items()
    }


def type_of(text: str) -> tuple[str, list[str]]:
    """Return the type that a text's words speak for, and those words; OTHER_TYPE without any."""
    terms = _spoken(text)
    hits = {kind: sorted({terms[term] for term in words & terms.keys()}) for kind, words in _routes()["types"].items()}
    best = max(hits, key=lambda kind: len(hits[kind]))  # of equal ones the first of the table
    return (best, hits[best]) if hits[best] else (OTHER_TYPE, [])


def route(text: str, agents: Mapping[str, SectionSet], lines: Iterable[Line]) -> list[Route]:
    """Return which agents of a project a text could go to, the best first: by what their memories speak of.

    A term counts the more, the fewer lines have it. Then the words that say what an agent of its name does.
    """
    category, cues = type_of(text)
    reason = f"{_quoted(cues)} {_speaks(cues)} for the type {category}" if cues else "no word speaks for a type"
    terms = _spoken(text)
    line_terms = [(line.agent, _terms(line.text)) for line in lines]
    having = Counter(term for _, term_set in line_terms for term in term_set)
    scored = []
    for agent, sections in agents.items():
        own = Counter(term for of, term_set in line_terms if of == agent for term in term_set & terms.keys())
        weights = {term: math.log(1 + len(line_terms) / having[term]) * min(own[term], MOST_NAMED) for term in own}
        duties = _routes()["agents"].get(agent, frozenset()) | frozenset(index_terms(agent.replace("_", " ")))
        named = sorted(duties & terms.keys())
        score = sum(weights.values()) + 2.0 * len(named)
        if score < LEAST_LIKE:
            continue
        best = sorted(weights, key=lambda term: (-weights[term], term))[:MOST_NAMED]
        parts = []
        if best:
            parts.append(f"its memories speak of {_quoted([terms[term] for term in best])}")
        if named:
            parts.append(f"{_quoted([terms[term] for term in named])} {_speaks(named)} for its work")
        why = f"{' and '.join(parts)}; {reason}."
        scored.append((-score, agent, Route(agent, category, sections.section_of(category), why[0].upper() + why[1:])))
    return [one for _, _, one in sorted(scored, key=lambda row: row[:2])]


def _spoken(text: str) -> dict[str, str]:
    """Return the words of a text by their terms, as it spells them."""
    by_term: dict[str, str] = {}
    for word in text.split():
        plain = word.strip(".,;:!?()[]{}\"'`*")
        for term in index_terms(plain):
            by_term.setdefault(term, plain)
    return by_term


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words[:MOST_NAMED])


def _speaks(words: Sequence[str]) -> str:
    return "speaks" if len(words) == 1 else "speak"
