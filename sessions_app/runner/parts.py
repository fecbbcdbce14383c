"""Say line by line what a session is told, where each line comes from and why it is there; and what it is not told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from claudeops.lib.secrets import mask
from memories.curate.told import Curated
from memories.injection.budget import tokens
from memories.injection.relevant import BY_CONFIDENCE
from memories.injection.selector import TOLD_ONCE
from memories.models import MemoryFile, MemoryFileCommit, Project
from sessions_app.errors import InvalidSession
from sessions_app.models import Agent, Session
from sessions_app.runner.prompt import Selected, selected_for

MOST_LEFT_OUT = 200
KINDS = {"curated": 1, "file": 1, "project": 2, "knowledge": 2, "ops": 2}
WITH_A_PART = ("Curated Memory", "Memories", "Knowledge", "Agent Memory")
"""The sections of a prompt whose lines are parts of their own."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line and why it is told, or is not.

    `memory` is what it comes from, `file` the MEMORY.md by its project's slug ("" is the global one); None for neither.
    `is_new`: an earlier prompt did not have it.
    """

    text: str
    why: str
    memory: int | None = None
    file: str | None = None
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what is told: its lines in their order, its tokens (characters / 4), and its budget, 0 without one."""

    name: str
    title: str
    lines: tuple[Line, ...]
    tokens: int
    budget: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that a session is told, and the nearest of what it is not.

    `prompt` is the composed one; where there is none, `why` says so.
    """

    selected: Selected
    parts: tuple[Part, ...]
    left_out: tuple[Line, ...]
    prompt: str = ""
    why: str = ""

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def budget(self) -> int:
        return sum(max(part.budget, part.tokens) for part in self.parts)

    @property
    def bars(self) -> list[tuple[Part, int, int]]:
        """Return the parts with the begin of each in a bar of `budget` tokens, and its kind."""
        bars, at = [], 0
        for part in self.parts:
            bars.append((part, at, KINDS.get(part.name, 3)))
            at += part.tokens
        return bars

    @property
    def line_count(self) -> int:
        return sum(len(part.lines) for part in self.parts)

    @property
    def saved(self) -> int:
        """Tokens of what stands in another part already."""
        return tokens("\n".join(line.text for line in self.once))

    def beside(self, new: frozenset[int | str]) -> Answer:
        """Return the answer with a mark at each line that is new: by its memory, or by its text."""

        def marked(line: Line) -> Line:
            return replace(line, is_new=line.memory in new or line.text.strip() in new)

        return replace(self, parts=tuple(replace(one, lines=tuple(map(marked, one.lines))) for one in self.parts))

    @property
    def once(self) -> list[Line]:
        return [line for line in self.left_out if line.why == TOLD_ONCE]

    @property
    def untold(self) -> list[Line]:
        return [line for line in self.left_out if line.why != TOLD_ONCE]

    def as_data(self) -> dict[str, Any]:
        """Return what is told. What is not may be held or another project's, which not every caller may see."""
        parts = [
            {name: getattr(part, name) for name in ("name", "title", "tokens", "budget")}
            | {"lines": [{"text": line.text, "why": line.why, "memory": line.memory} for line in part.lines]}
            for part in self.parts
        ]
        return {"tokens": self.tokens, "budget": self.budget, "told_once": len(self.once), "parts": parts}


def answer_for(agent: Agent | None, project: Project | None, task: str, *, at: datetime) -> Answer:
    """Say what the next session of an agent, in its own project or the given one, would be told at `at` (aware UTC)."""
    project = agent.project if agent and agent.project else project
    return answer_to(Session(agent=agent, project=project, tier=agent.tier if agent else 1, task=mask(task)), at=at)


def answer_to(session: Session, *, at: datetime, budget: int | None = None) -> Answer:
    """Say what a session that is not stored would be told; nothing is stored or spent."""
    selected = selected_for(session, at=at, budget=budget)
    try:
        composed = selected.composed(session, handoff_file="handoff.json", at=at)
    except InvalidSession as error:
        return replace(answer_of(selected), why=f"{error} {error.fix}".strip())
    return replace(answer_of(selected, composed.sections), prompt=composed.text)


def answer_of(selected: Selected, sections: Iterable[tuple[str, str]] = ()) -> Answer:
    """Return what was selected for a session, line by line; `sections` are those of its composed prompt."""
    project, known, ops = selected.project, selected.knowledge, selected.ops
    parts = [
        Part("curated", "MEMORY.md", _curated(selected.curated), selected.curated.tokens, selected.curated.budget),
        Part("file", "Memory file of the agent", _of_file(selected), selected.agent.tokens),
        Part("project", "Memories of the project", _entries(project.included), project.tokens, project.budget),
        Part("knowledge", "Knowledge", _entries(known.included), known.tokens, known.budget),
        Part("ops", "Operational memories", _entries(ops.included), ops.tokens, ops.budget),
    ]
    parts += [
        Part("other", title, tuple(Line(line, "") for line in text.splitlines() if line.strip()), tokens(text))
        for title, text in sections
        if title.partition(" (")[0] not in WITH_A_PART and text.strip()
    ]
    slugs = {file.pk: _slug(file) for file in selected.curated.files}
    left_out = [
        *(Line(one.text, one.reason, file=slugs.get(one.file)) for one in selected.curated.left_out),
        *_entries(selected.agent.left_out),
        *(Line(one["text"], one["reason"]) for one in selected.agent.untold),
        *_entries([*project.left_out, *known.left_out, *ops.left_out]),
    ]
    return Answer(selected, tuple(part for part in parts if part.lines), tuple(left_out[:MOST_LEFT_OUT]))


def _curated(curated: Curated) -> tuple[Line, ...]:
    blamed = {one.line: one.file.blame[one.line - 1] for one in curated.included if one.line <= len(one.file.blame)}
    commits = MemoryFileCommit.objects.in_bulk({pk for pk in blamed.values() if pk})
    lines = []
    for one in curated.included:
        commit = commits.get(blamed.get(one.line) or 0)
        by = f", by {commit.author}" if commit else ", not committed"
        first, *rest = one.text.split("\n")
        lines.append(Line(first, f"{one.section}, line {one.line}{by}", file=_slug(one.file)))
        lines += [Line(row, f"with line {one.line}", file=_slug(one.file)) for row in rest]
    return tuple(lines)


def _of_file(selected: Selected) -> tuple[Line, ...]:
    """Return the lines of the agent's file as they are told; a line of prose is no memory."""
    by_text = {entry["observation"]: entry for entry in selected.agent.included}
    lines = []
    for row in selected.agent.text.splitlines():
        entry = by_text.get(row.strip().partition(" ")[2])
        if row.strip():
            lines.append(Line(row, entry["reason"] if entry else "", entry["id"] if entry else None))
    return tuple(lines)


def _entries(entries: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    return tuple(
        Line(str(one["observation"] or f"memory {one['id']}"), str(one["reason"] or BY_CONFIDENCE), one["id"])
        for one in entries
    )


def _slug(file: MemoryFile) -> str:
    return file.project.slug if file.project else ""
