"""Remove the lines of agents' memory files that state a text, before their memories go: no sync takes them in again."""

from __future__ import annotations

from claudeops.purge.texts import Needles
from memories.files import storage
from memories.files.document import Edits
from memories.files.storage import Unusable
from memories.models import AgentFile


def remove(needles: Needles, *, write: bool) -> tuple[int, dict[str, str]]:
    """Return how many lines were removed (or would be), and the files that could not be changed, with the reason."""
    count, left = 0, {}
    for file in AgentFile.objects.select_related("project").order_by("pk"):
        if not file.project.path:
            continue
        name = storage.relative_path(file.project, file.agent)
        try:
            with storage.lock_of(file.project_id, file.agent):
                count += _of(file, needles, write=write)
        except Unusable as error:
            if needles.are_in(file.text):  # a file that never was, or is of another host, is no news
                left[f"{file.project.slug}: {name}"] = str(error)
    return count, left


def _of(file: AgentFile, needles: Needles, *, write: bool) -> int:
    path = storage.location(file.project, file.agent)
    stored, document = storage.read_document(path)
    gone = frozenset(entry for entry in document.entries if needles.are_in(entry.text))
    if not gone or not write:
        return len(gone)
    after = document.edited(Edits(remove=gone))
    stored = storage.write(path, after.to_bytes())
    file.entries.filter(text__in={entry.text for entry in gone}).delete()
    # seen_change None: the next sync compares all of it.
    AgentFile.objects.filter(pk=file.pk).update(
        text=after.to_bytes().decode(),
        sha256=stored.sha256,
        size=stored.size,
        modified_ns=stored.modified_ns,
        seen_change=None,
    )
    return len(gone)
