"""Decide whether a text may become a memory: allow, hold or discard. Deterministic, without a database; fails closed.

`discard` loses the text, so it is only for text that says nothing. `hold` stores it for review and never injects it:
text that hides what it says, that addresses the model or has the form of an attack (one poisoned tool result would
reach every later session), unreadable text, text too long for an observation. Credentials were masked when the
statement was made, which does not speak against the rest; a text that still holds one is held.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from claudeops.lib.secrets import find
from memories.capture.attack_forms import attack_form
from memories.capture.readings import disguise, readings

LONGEST = 10_000
"""Characters. A longer text is a document, not an observation."""

SHORTEST = 5
"""Letters and digits. A shorter text says nothing ("ok", "n/a")."""

UNREADABLE_SHARE = 0.3
"""Share of replacement and control characters above which a text counts as unreadable."""

MASK = re.compile(r"\[secret: [^\[\]]{1,60}\]")
WORD = re.compile(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdict` is allow, hold or discard; `reason` is for a person (empty when allowed)."""

    verdict: str
    reason: str = ""


def judge(text: str, folded: str) -> Judgement:
    """The verdict on a text as it was written and as folded. Never raises: on an error the verdict is hold."""
    try:
        return _judge(text, folded)
    except Exception as error:
        return Judgement("hold", f"could not be judged: {type(error).__name__}: {error}"[:500])


def _judge(text: str, folded: str) -> Judgement:
    if not folded:
        return Judgement("discard", "empty")
    if len(text) > LONGEST:
        return Judgement("hold", f"longer than {LONGEST:,} characters")
    if _unreadable_share(text) > UNREADABLE_SHARE:
        return Judgement("hold", "mostly unreadable characters")
    # NFKC, so that full-width characters hide nothing; folding removed the invisible ones.
    normal = unicodedata.normalize("NFKC", folded)
    if sum(character.isalnum() for character in normal) < SHORTEST:
        return Judgement("discard", "too short to say anything")
    if found := find(normal):
        return Judgement("hold", f"holds a credential: {found[0].kind}")
    if MASK.search(normal) and len(WORD.findall(MASK.sub(" ", normal))) < 2:
        return Judgement("discard", "says nothing but a credential, which was masked")
    if what := disguise(text):
        return Judgement("hold", f"hides what it says: {what}")
    for reading in readings(text, folded):
        if what := attack_form(reading):
            return Judgement("hold", what)
    return Judgement("allow")


def _unreadable_share(text: str) -> float:
    if text.isascii() and text.isprintable():
        return 0.0
    seen = unreadable = 0
    for character in text:
        if character.isspace():
            continue
        seen += 1
        unreadable += character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn")
    return unreadable / seen if seen else 0.0
