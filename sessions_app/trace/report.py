"""A trace as text for a terminal, and the commands that follow from it."""

from __future__ import annotations

from collections.abc import Iterator

from claudeops.lib import humanize
from sessions_app.trace.service import Trace
from sessions_app.trace.steps import End, Outcome

SIGNS = {
    Outcome.PASSED: "ok",
    Outcome.LOW: "low",
    Outcome.ENDED: "ENDED",
    Outcome.NOT_REACHED: "-",
    Outcome.UNKNOWN: "?",
}


def text_of(found: Trace) -> str:
    """Return the sentence, the eight steps below it, and the ranking around the memory."""
    return "\n".join(_lines(found))


def _lines(found: Trace) -> Iterator[str]:
    yield found.sentence
    if found.more:
        yield found.more
    yield ""
    for step in found.steps:
        at = f" ({humanize.exact(step.seen.at)})" if step.seen.at else ""
        yield f"{step.label:<10}  {SIGNS[step.outcome]:<5}  {step.seen.text}{at}"
        if step.seen.note:
            yield f"{'':<19}{step.seen.note}"
    if found.ranks:
        yield ""
        yield f"{found.told:,} of {found.found:,} were told, in {found.budget:,} tokens:"
        for row in found.ranks:
            if row.is_cut:
                yield "      ---- the budget ends here ----"
            elif row.row:
                mark = "*" if row.is_it else " "
                yield f"{mark} {row.rank:>3}  {row.row.score:.2f}  {row.tokens:>4} tokens  {row.row.observation[:80]}"
    for one in found.others:
        yield f"Near it: memory {one.memory.pk} ({one.likeness:.2f}): {one.memory.observation[:120]}"
    yield from found.notes


def commands_of(found: Trace) -> list[tuple[str, str]]:
    """Return (command, what it does) for what can be done in a terminal."""
    pk = found.memory.pk if found.memory else None
    if pk is None:
        return [("manage.py memory add …", "Add it as a memory")] if found.end is not End.DISCARDED else []
    return [(f"manage.py memory show {pk}", f"Show memory {pk} with its history")]
