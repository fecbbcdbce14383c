"""Conflicts between an agent's file and its memories: note them, close those that are none any more, answer them.

`answer` changes the memories alone; the sync that follows brings the file in step.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from memories import store
from memories.capture.statement import HUMAN, Provenance, Statement
from memories.errors import Conflict, InvalidMemory
from memories.files.merge import FoundConflict
from memories.lifecycle import disagreements, verbs
from memories.lifecycle.lock import writing
from memories.lifecycle.undo import restore
from memories.models import (
    AgentFile,
    AgentFileConflict,
    AgentFileEntry,
    Answer,
    ConflictAnswer,
    ConflictKind,
    Disagreement,
    Memory,
    MemoryChange,
    to_utc,
)
from memories.taxonomy import AGENT

MASKED = "[secret: "
"""What stands in a stored text in the place of a credential that the file's line holds."""
BY_ITSELF = "system"
"""Who answered a conflict that ended because both sides agree again."""
OF_DISAGREEMENT = {
    ConflictAnswer.FILE: Answer.WRONG,
    ConflictAnswer.OTHER: Answer.SUPERSEDES,
    ConflictAnswer.BOTH: Answer.BOTH,
}


def note(file: AgentFile, found: FoundConflict, *, author: str, at: datetime) -> AgentFileConflict:
    """Note a conflict once; one that is open for the line gets its present texts. Inside `writing()` only."""
    return _note(
        file,
        found.memory_id,
        at,
        kind=found.kind,
        section=found.section,
        base_text=found.base_text,
        file_text=found.file_text,
        other_text=found.other_text,
        author=author[:150],
    )


def note_contradiction(file: AgentFile, pair: Disagreement, *, at: datetime) -> AgentFileConflict:
    """Note a memory that contradicts a line of the file and stays out of it. Inside `writing()` only."""
    older, newer = pair.older, pair.newer
    entry = file.entries.filter(memory=older).first()
    return _note(
        file,
        older.pk if older else None,
        at,
        other=newer,
        kind=ConflictKind.CONTRADICTED,
        section=entry.section if entry else "",
        file_text=older.observation if older else "",
        other_text=newer.observation if newer else "",
        author=entry.author if entry else "",
    )


def _note(
    file: AgentFile, memory_id: int | None, at: datetime, *, other: Memory | None = None, **new: object
) -> AgentFileConflict:
    conflict = file.conflicts.filter(memory=memory_id, other=other, answered_at=None).first()
    if conflict is None:
        return AgentFileConflict.objects.create(file=file, memory_id=memory_id, other=other, found_at=at, **new)
    if any(getattr(conflict, name) != value for name, value in new.items()):
        for name, value in new.items():
            setattr(conflict, name, value)
        conflict.save()
    return conflict


def close_settled(file: AgentFile, *, still: Collection[int], contradicting: Collection[int], at: datetime) -> int:
    """Close open conflicts of which neither the line (`still`) nor the other memory (`contradicting`) differs now."""
    rows = file.conflicts.filter(answered_at=None)
    edits = rows.filter(other=None).exclude(kind=ConflictKind.CONTRADICTED).exclude(memory__in=still)
    contradictions = rows.filter(kind=ConflictKind.CONTRADICTED).exclude(other__in=contradicting)
    return sum(some.update(answered_at=at, answered_by=BY_ITSELF) for some in (edits, contradictions))


def answer(conflict: AgentFileConflict | int, choice: str, *, by: str, at: datetime | None = None) -> AgentFileConflict:
    """Carry out a person's answer, once. Raises Conflict when it was answered already, InvalidMemory for a wrong one.

    The caller syncs the file afterwards.
    """
    if choice not in ConflictAnswer.values:
        raise InvalidMemory(f"answer is {choice!r}; allowed are {', '.join(ConflictAnswer.values)}.", field="answer")
    when = to_utc(at)
    pk = conflict if isinstance(conflict, int) else conflict.pk
    with writing():
        row = AgentFileConflict.objects.select_related("file", "memory", "other").filter(pk=pk).first()
        if row is None:
            raise InvalidMemory(f"There is no conflict {pk}.")
        fresh = AgentFileConflict.objects.filter(pk=pk, answered_at=None)
        if not fresh.update(answer=choice, answered_at=when, answered_by=by[:150]):
            raise Conflict(f"Conflict {pk} was answered already.", "Read the page again.")
        if row.kind == ConflictKind.CONTRADICTED:
            _answer_contradiction(row, ConflictAnswer(choice), by, when)
        else:
            _carry_out(row, ConflictAnswer(choice), by, when)
        AgentFile.objects.filter(pk=row.file_id).update(seen_change=None)  # an answer may change no memory
        row.refresh_from_db()
    return row


def _answer_contradiction(row: AgentFileConflict, choice: ConflictAnswer, by: str, at: datetime) -> None:
    pair = Disagreement.objects.open().filter(older=row.memory_id, newer=row.other_id).first()
    if pair is None:
        raise Conflict("The two memories do not contradict each other any more.", "Read the page again.")
    disagreements.answer(pair, OF_DISAGREEMENT[choice], by=by, at=at)


def _carry_out(row: AgentFileConflict, choice: ConflictAnswer, by: str, at: datetime) -> None:
    """Change the memory, or what the next sync compares the line with, so that the chosen text remains."""
    memory = row.memory
    if memory is None:
        raise Conflict("The memory of this line was deleted.", "Sync the file; the line becomes a new memory.")
    entry = AgentFileEntry.objects.filter(file=row.file_id, memory=memory)
    typed = Provenance.typed_by(by)
    if choice == ConflictAnswer.OTHER:
        if row.kind == ConflictKind.REMOVED_IN_FILE:
            entry.delete()  # the sync brings the line back
        elif row.other_text and MASKED in row.file_text:
            raise Conflict(
                "The line holds a credential that is stored nowhere else, so it is not overwritten.",
                "Change the line in the file, or keep the file's text.",
            )
        else:
            entry.update(text=row.file_text, section=row.section)  # the file has not changed: the memory has
        return
    if row.kind == ConflictKind.REMOVED_IN_FILE and choice == ConflictAnswer.FILE:
        verbs.deactivate(memory, by=by, at=at, reason="Removed from the file; a person kept that.")
        entry.delete()
        return
    if row.kind == ConflictKind.REMOVED_IN_FILE:
        entry.delete()
        return
    if choice == ConflictAnswer.BOTH and row.kind == ConflictKind.EDITED:
        _split(row, by, at)
        return
    if not memory.active:
        verbs.reactivate(memory, by=by, at=at, reason="Kept in the file by a person.")
    verbs.edit(
        memory, by=by, at=at, observation=row.file_text, provenance=typed, reason="A person kept the file's text."
    )


def can_be_undone(row: AgentFileConflict) -> bool:
    """Whether an answer can be taken back: one that kept one of two changed texts."""
    return row.kind == ConflictKind.EDITED and row.answer in (ConflictAnswer.FILE, ConflictAnswer.OTHER)


def take_back(conflict: AgentFileConflict, *, by: str, at: datetime | None = None) -> AgentFileConflict:
    """Open a conflict again: the memory gets its text of before. `typed.take_back` does the same for the file.

    Raises Conflict when it is open already, or the memory was changed since. The caller syncs the file afterwards.
    """
    with writing():
        row = AgentFileConflict.objects.select_related("memory").filter(pk=conflict.pk).first()
        if row is None or row.memory is None or row.answered_at is None or not can_be_undone(row):
            raise Conflict("This answer cannot be undone.", "Edit the line instead.")
        if AgentFileConflict.objects.filter(file=row.file_id, memory=row.memory, answered_at=None).exists():
            raise Conflict("The line is in conflict again already.", "Read the page again.")
        change = MemoryChange.objects.filter(memory=row.memory, at=row.answered_at, actor=row.answered_by).last()
        if row.answer == ConflictAnswer.OTHER and row.memory.observation != row.other_text:
            raise Conflict("The memory was changed since.", "Edit the line instead.")
        if change is not None and row.answer == ConflictAnswer.FILE:
            restore(row.memory, change, by=by, at=at, only_latest=True)
        # What the next comparison starts from: again both sides differ from it.
        AgentFileEntry.objects.filter(file=row.file_id, memory=row.memory).update(text=row.base_text)
        AgentFile.objects.filter(pk=row.file_id).update(seen_change=None)
        row.answer, row.answered_at, row.answered_by = "", None, ""
        row.save()
    return row


def _split(row: AgentFileConflict, by: str, at: datetime) -> None:
    """Make the file's text a memory of its own, whose line is the present one; the sync adds the other's line."""
    memory = row.memory
    if memory is None:
        return
    statement = Statement(memory.category, row.file_text, taxonomy=AGENT.slug)
    provenance = Provenance(HUMAN, by, project_id=row.file.project_id, agent=row.file.agent, channel=HUMAN)
    result = store.place(statement, provenance, at=at)
    if result.memory_id is None:
        raise InvalidMemory("The file's text says too little to be a memory of its own.", "Choose one of the two.")
    AgentFileEntry.objects.filter(file=row.file_id, memory=memory).delete()
    AgentFileEntry.objects.update_or_create(
        file=row.file,
        memory_id=result.memory_id,
        defaults={"section": row.section, "text": row.file_text, "author": by[:150], "since": at, "left_because": ""},
    )
