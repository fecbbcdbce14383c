"""Save the whole text of an agent's file as a person typed it on its page: the file is written, then it is synced.

What the person typed is that person's word; the lines that stood there before keep their authors.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from difflib import SequenceMatcher

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import disk
from memories.errors import Conflict, InvalidMemory
from memories.files import conflicts, storage
from memories.files.authors import FILE
from memories.files.conflicts import MASKED
from memories.files.document import Document, Edits, parse
from memories.files.sync import Synced, sync_file
from memories.injection.passages import plain
from memories.lifecycle import verbs, vouched
from memories.models import (
    AgentFile,
    AgentFileConflict,
    AgentFileEntry,
    ConflictAnswer,
    ConflictKind,
    to_utc,
)


def save_text(file: AgentFile, text: str, *, sha256: str, by: str, at: datetime | None = None) -> Synced:
    """Write a file that had the bytes of `sha256` when `by` read it (credentials masked), then sync it.

    Raises Conflict when it was changed since, InvalidMemory for a text that cannot be written, Unusable for the disk.
    """
    when = to_utc(at)
    with storage.lock_of(file.project_id, file.agent):
        path = storage.location(file.project, file.agent)
        stored, before = storage.read_document(path)
        if stored.missing or hashlib.sha256(stored.data).hexdigest() != sha256:
            raise Conflict("The file was changed since you read it.", "Copy your text and read the page again.")
        after = merged(before, text)
        problem = parse(after.to_bytes()).unreadable
        if problem:
            raise InvalidMemory(f"The text cannot be saved: {problem}.", field="text")
        if after.to_bytes() != stored.data:
            disk.write(path, after.to_bytes())
    outcome = sync_file(file.project, file.agent, by=by, at=when)
    if _confirm(file, before, after, by, when):
        outcome = sync_file(file.project, file.agent, by=by, at=when)
    return outcome


def take_back(conflict: AgentFileConflict, *, by: str, at: datetime | None = None) -> AgentFileConflict:
    """Open a conflict again: memory and file have the texts that stood against each other. The caller syncs.

    Raises Conflict where either was changed since, and Unusable for the disk.
    """
    if conflict.answer != ConflictAnswer.OTHER:
        return conflicts.take_back(conflict, by=by, at=at)
    file = conflict.file
    with storage.lock_of(file.project_id, file.agent):
        path = storage.location(file.project, file.agent)
        document = parse(disk.read(path).data)
        line = next((one for one in document.entries if one.text == conflict.other_text), None)
        if line is None:
            raise Conflict("The line was changed in the file since.", "Edit it instead.")
        row = conflicts.take_back(conflict, by=by, at=at)
        # If this is never written, both sides have one text and the next sync closes the conflict.
        disk.write(path, document.edited(Edits(replace={line: conflict.file_text})).to_bytes())
    return row


def merged(before: Document, text: str) -> Document:
    """Return the document with `text`, whose lines that were there before keep their bytes. Pure.

    A browser sends other line ends, and it was shown masked credentials: both come from the lines of before. Raises
    InvalidMemory for a masked credential that stands in no line of before.
    """
    masked = [mask(line) for line, _ in before.lines]
    if mask("\n".join(line for line, _ in before.lines)) != "\n".join(masked):
        raise InvalidMemory("The file holds a credential of several lines.", "Change the file in the repository.")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if ended := lines[-1] == "":
        lines.pop()
    hidden = {safe_line: line for safe_line, line in zip(masked, before.lines, strict=True) if safe_line != line[0]}
    new_lines: list[tuple[str, str]] = []
    for kind, start, end, first, last in SequenceMatcher(None, masked, lines, autojunk=False).get_opcodes():
        if kind == "equal":
            new_lines += before.lines[start:end]
            continue
        for line in lines[first:last]:
            if line in hidden:
                new_lines.append((hidden[line][0], before.line_end))
            elif MASKED in line:
                raise InvalidMemory(
                    "A line with a masked credential was changed.",
                    "Change such a line in the repository.",
                    field="text",
                )
            else:
                new_lines.append((line, before.line_end))
    whole = [(line, end or before.line_end) for line, end in new_lines]
    if whole and not ended:
        whole[-1] = (whole[-1][0], "")
    return Document(tuple(whole), before.bom)


def _prose(document: Document) -> set[str]:
    entries = {entry.start for entry in document.entries}
    texts = [one.text for passage in document.passages for one in passage.parts if one.at not in entries]
    return {plain(text) for text in [*texts, *(heading.text for heading in document.headings)] if text}


def _confirm(file: AgentFile, before: Document, after: Document, by: str, at: datetime) -> bool:
    """Confirm what the person typed: lines that the gate held, and changes that it did not allow."""
    old = {(entry.section.casefold(), entry.text) for entry in before.entries}
    typed = {(entry.section.casefold(), entry.text) for entry in after.entries} - old
    answered = False
    old_prose, new_prose = _prose(before), _prose(after)
    vouched.withdraw(old_prose - new_prose, file.project_id)
    vouched.vouch(new_prose - old_prose, file.project_id, by=by, at=at)
    for refused in file.conflicts.filter(answered_at=None, kind=ConflictKind.EDITED, author=FILE):
        if (refused.section.casefold(), refused.file_text) in typed and refused.base_text == refused.other_text:
            conflicts.answer(refused, ConflictAnswer.FILE, by=by, at=at)
            answered = True
    for row in file.entries.filter(author=FILE, left_because="").select_related("memory"):
        if (row.section.casefold(), row.text) not in typed or row.memory is None:
            continue
        if row.memory.waits:
            verbs.approve(row.memory, by=by, at=at, reason="Typed on the page of its file.", expected_text=row.text)
        AgentFileEntry.objects.filter(pk=row.pk).update(author=by[:150])
    return answered
