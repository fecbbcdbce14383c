"""What the agent of a transcript had read, and whether its words repeat that: for what it says at its end.

The path comes from a hook: only a transcript of the CLI on this host is read. Whatever cannot be read counts as outside
text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from memories.models import Exposure
from sessions_app.runner import quoting, stream
from sessions_app.runner.ingest import table_of_settings
from sessions_app.runner.projection import Batch, State, project
from sessions_app.runner.reader import complete_lines
from sessions_app.transcripts.files import known_place

LARGEST = 64 * 1024 * 1024
"""Bytes of a transcript that is read."""
UNREAD = "a transcript that could not be read"


@dataclass(frozen=True, slots=True)
class Heard:
    """What was read. `repeats` says what of it a text repeats; empty when the text is the agent's own."""

    exposure: str = Exposure.OUTSIDE.value
    sources: tuple[str, ...] = (UNREAD,)
    repeats: Callable[[str], str] = field(default=lambda text: "")


def heard_in(path: str, *, at: datetime) -> Heard:
    """Read the transcript at `path`; `at` is now (aware UTC)."""
    found = known_place(path)
    if found is None:
        return Heard()
    state, batch, table = State(), Batch(), table_of_settings()
    results: dict[int, list[str]] = {}
    try:
        if found.stat().st_size > LARGEST:
            return Heard()
        for raw in complete_lines(found, 0, final=True):
            if raw.data is None:
                state.reading.missed()
                continue
            project(stream.parse(raw.data, include_subagents=True), raw.start, state, batch, now=at, table=table)
            results |= batch.results
            batch = Batch()
    except OSError:
        return Heard()
    read = state.reading.read()
    texts = [(source, quoting.Text(text)) for offset, source in read.results for text in results.get(offset, ())]
    return Heard(read.exposure, read.sources, lambda text: quoting.repeated(text, texts))
