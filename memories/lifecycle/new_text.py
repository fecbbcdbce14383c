"""Check a new text for a known memory: what no person typed passes the gate, as a new memory's text does."""

from __future__ import annotations

from memories.capture.fields import checked_observation
from memories.capture.gate import judge
from memories.capture.statement import Provenance
from memories.errors import InvalidMemory, TextHeld
from memories.lifecycle import forgotten


def checked_text(text: str, provenance: Provenance | None, *, current: str, taxonomy: str) -> str:
    """Return the folded text. Raises InvalidMemory, also for a purged text, and TextHeld when the gate refuses it.

    `provenance` None is an unknown caller: the gate judges, by the rules of the memory's taxonomy. A text that is
    `current` already is not judged again.
    """
    folded = checked_observation(text)
    if folded != current and (why := forgotten.refusal(folded)):
        raise InvalidMemory(why, forgotten.FIX, field="observation")
    if folded == current or (provenance is not None and provenance.typed):
        return folded
    judgement = judge(text, folded, taxonomy=taxonomy)
    if judgement.verdict != "allow":
        raise TextHeld(
            f"The text is not allowed: {judgement.reason}. Nothing was changed.",
            "Say what was observed, in a sentence; or let a person edit the memory in the dashboard.",
            field="observation",
        )
    return folded
