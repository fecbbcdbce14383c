"""What the reflector is told, and the message with the observations and the entries of MEMORY.md. Pure.

The message is one JSON object, so that no text in it can end the text that it stands in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claudeops.lib.secrets import mask
from memories.capture.text import fold
from memories.observe.categories import MEANINGS

INSTRUCTIONS = (
    Path(__file__)
    .with_name("instructions.md")
    .read_text(encoding="utf-8")
    .strip()
    .replace("{categories}", "\n".join(f"- {slug}: {meaning}" for slug, meaning in MEANINGS.items()))
)
MOST_TOKENS = 12_000
"""Of the observations of one message, as characters / 4 of their JSON."""
MOST_OBSERVATIONS = 200
MOST_SHOWN = 1_000
"""Characters of an observation; what is longer is cut."""
TARGET = (0.6, 0.8)
"""The compression target: what the file should have after the changes, as shares of the tokens that went in."""
CHARACTERS_A_TOKEN = 4

TAG = re.compile(r"<(?=\s{0,3}/?\s{0,3}(?:proposals?|kind|entry|section|change|evidence|add|remove)\b)", re.IGNORECASE)
"""A tag of the answer: an observation must not write a proposal that the reflector copies."""


@dataclass(frozen=True, slots=True)
class ShownObservation:
    """An observation as the reflector is shown it. `on`: its last confirmation (a UTC day); `confidence`: 0..1."""

    text: str
    section: str
    on: str
    trust: str
    confidence: float
    confirmed: int


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """An entry of MEMORY.md: `on` is its day as YYYY-MM-DD, "" for one without a day."""

    section: str
    on: str
    text: str


def message(
    observations: Sequence[ShownObservation], entries: Sequence[ShownEntry], *, most_entries: int
) -> tuple[str, tuple[int, int]]:
    """Return the message and the compression target in tokens as (least, most). Both lists are numbered from 1."""
    items = [_observation(number, one) for number, one in enumerate(observations, start=1)]
    file = [
        {"entry": number, "section": framed(one.section), "date": one.on, "text": framed(one.text)}
        for number, one in enumerate(entries, start=1)
    ]
    tokens_in = tokens_of(items) + tokens_of(file)
    least, most = (round(tokens_in * share) for share in TARGET)
    whole = {
        "target_tokens": {"least": least, "most": most},
        "most_entries": most_entries,
        "entries": file,
        "observations": items,
    }
    return json.dumps(whole, ensure_ascii=False, indent=0), (least, most)


def fitting(observations: Sequence[ShownObservation]) -> int:
    """Return how many of them, from the first, fit into one message; at least one when there is one."""
    total = 0
    for count, one in enumerate(observations[:MOST_OBSERVATIONS]):
        total += tokens_of([_observation(count + 1, one)])
        if total > MOST_TOKENS and count:
            return count
    return min(len(observations), MOST_OBSERVATIONS)


def entries_of(text: str) -> list[str]:
    """Return the texts of the entries that a message showed, in their order; none where they cannot be read."""
    try:
        entries = json.loads(text)["entries"]
        return [str(one["text"]) for one in entries]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def framed(text: str) -> str:
    """Return a text in one line, its credentials masked, without tags of the answer."""
    return TAG.sub("‹", fold(mask(text)))


def tokens_of(shown: Sequence[dict[str, object]]) -> int:
    """Estimate the tokens of a part of a message."""
    return len(json.dumps(shown, ensure_ascii=False)) // CHARACTERS_A_TOKEN


def _observation(number: int, one: ShownObservation) -> dict[str, object]:
    text = framed(one.text)
    return {
        "observation": number,
        "section": one.section,
        "date": one.on,
        "trust": one.trust,
        "confidence": round(one.confidence, 2),
        "times_confirmed": one.confirmed,
        "text": text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…",
    }
