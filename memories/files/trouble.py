"""Which agent files need a person: those that cannot be read or written, and those beyond their limits."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from memories.models import AgentFile, FileState


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a file, without a full stop, and what to do about it."""

    text: str
    advice: str


ROOM = "Shorten it, such as by `agent-memory optimize`, or raise its limits by `agent-memory limits`."
STATES = {
    FileState.UNREADABLE: ("cannot be read", "Mend or move it; nothing is written to it meanwhile."),
    FileState.CONFLICT: ("is in a merge conflict", "Resolve it in the file; until then the text of before is told."),
    FileState.DELETED: ("was deleted in git", "It stays so. Put an empty file there to begin anew, or switch it off."),
    FileState.UNWRITABLE: ("cannot be written", "Let the user of the worker write there; the next sync writes it."),
    FileState.NO_REPOSITORY: ("has no repository", "Correct the project's repository path, or switch the file off."),
    FileState.FULL: ("is larger than its limits", f"Nothing is cut, and what has no room is told all the same. {ROOM}"),
}
FAILED = ("could not be synced", "It is tried again within five minutes; the log of the worker says more.")


def troubled(most: int) -> list[Trouble]:
    """Return up to `most` troubles of files that are on, by project and agent. One that a person deleted is none."""
    rows = AgentFile.objects.filter(Q(state__in=STATES) | ~Q(problem=""), enabled=True).select_related("project")
    rows = rows.exclude(state=FileState.DELETED)
    return [trouble_of(file) for file in rows.only("agent", "state", "problem", "project__slug")[:most]]


def trouble_of(file: AgentFile) -> Trouble:
    """Return what is wrong with a file that has a problem."""
    what, advice = STATES.get(FileState(file.state), FAILED)
    why = f": {file.problem.rstrip('.')}" if file.problem else ""
    return Trouble(f"The memory file of {file.agent} in {file.project} {what}{why}", advice)
