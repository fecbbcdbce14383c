"""The gate: decide whether a text may become a memory. Deterministic; fails closed. Knows no database.

`discard` is only for text that says nothing, since it is lost. `hold` stores the memory for review and never injects
it. Held are: credentials (memories are copied into prompts, receipts and exports), text that addresses the model
(one poisoned tool result would reach every later session), unreadable text, and text too long for an observation.
The gate does not judge whether an observation is true or useful: confirmation, contradiction and decay do.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from memories.capture.text import fold

LONGEST = 10_000
"""Characters. A longer text is a document, not an observation."""

SHORTEST = 5
"""Letters and digits. A shorter text says nothing ("ok", "n/a")."""

UNREADABLE_SHARE = 0.3
"""Share of replacement and control characters above which a text counts as unreadable."""


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
    if what := _credential(normal):
        return Judgement("hold", f"looks like a credential: {what}")
    for pattern, what in INSTRUCTIONS:
        if pattern.search(normal):
            return Judgement("hold", f"talks to the model: {what}")
    return Judgement("allow")


def credential(text: str) -> str:
    """The kind of credential that a text seems to hold, "" for none. Used before text is sent to another host."""
    return _credential(unicodedata.normalize("NFKC", fold(text)))


def _credential(text: str) -> str:
    kinds = (what for pattern, what in CREDENTIALS if pattern.search(text))
    return next(kinds, "") or ("a long random value" if _holds_random_value(text) else "")


def _unreadable_share(text: str) -> float:
    """How much of `text`, white space aside, is replacement, control, surrogate or unassigned characters."""
    if text.isascii() and text.isprintable():
        return 0.0
    seen = unreadable = 0
    for character in text:
        if character.isspace():
            continue
        seen += 1
        unreadable += character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn")
    return unreadable / seen if seen else 0.0


def _patterns(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), what) for pattern, what in pairs)


# Not a value: a placeholder, a variable, a mask.
_NO_VALUE = r"(?![<$%{(*]|x{3,}|\.{2,})"
_NAMED = (
    r"\b[\w.-]{0,40}(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)\b"
)

CREDENTIALS = _patterns(
    (r"-----BEGIN [A-Z ]*PRIVATE KEY", "a private key"),
    (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "an AWS key"),
    (r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}", "a GitHub token"),
    (r"\bglpat-[\w-]{16,}", "a GitLab token"),
    (r"\bsk-[A-Za-z0-9_-]{16,}", "an API key"),
    (r"\bxox[a-z]-[A-Za-z0-9-]{10,}", "a Slack token"),
    (r"\bAIza[\w-]{30,}", "a Google API key"),
    (r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.", "a JSON web token"),
    (r"\bBearer\s+[\w.~+/-]{20,}", "a bearer token"),
    (r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,200}:" + _NO_VALUE + r"[^\s:/@]{1,200}@", "a password in a URL"),
    (_NAMED + r"[\"']?\s*=\s*[\"']?" + _NO_VALUE + r"[^\s\"']{3,}", "a password or key with its value"),
    (
        r"\s--?(?:password|passwd|token|secret|api-key)[= ]" + _NO_VALUE + r"[^\s-]\S{2,}",
        "a password on a command line",
    ),
    # In prose ("the token: expires daily") only a value that mixes letters and digits counts.
    (
        _NAMED + r"[\"']?\s*(?::|\bis\b)\s*[\"']?" + _NO_VALUE + r"(?=[^\s\"']*\d)(?=[^\s\"']*[a-z])[^\s\"']{6,}",
        "a password or key with its value",
    ),
)

INSTRUCTIONS = _patterns(
    (
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}"
        r"\b(?:previous|prior|earlier|preceding|above|all|any|your|system|safety)\b[^.]{0,30}"
        r"\b(?:instructions?|rules?|prompts?|guidelines?|directions?|orders?|restrictions?)\b",
        "asks to set instructions aside",
    ),
    (r"\byou (?:must|should|will|have to|are to) now\b|\bfrom now on,? you\b", "gives orders"),
    (r"\byou are now (?:a|an|the|in|no longer|free)\b|\bpretend (?:to be|that you|you are)\b", "gives a new role"),
    (r"\bsystem prompt\b|\bnew instructions?\s*:", "names the prompt"),
    (r"\bdo(?: not|n't) (?:tell|inform|mention (?:this|it) to|reveal (?:this|it) to) the (?:user|operator|human)\b",
     "asks for secrecy"),
    (
        r"</?(?:\w+:)?(?:system(?:[-_]\w+)?|assistant|human|instructions?|tool_(?:use|result)|thinking|invoke|"
        r"function_(?:calls?|results?))\b[^>]*>|</user>|<\|[\w-]+\|>|\[/?INST\]|<</?SYS>>",
        "holds a role tag",
    ),
)  # fmt: skip

ASSIGNED = re.compile(r"[=:]\s*[\"']?([A-Za-z0-9+/_=-]{32,})")


def _holds_random_value(text: str) -> bool:
    """Whether a random value of 32 characters or more is assigned.

    Digests (hexadecimal, at most 4 bits a character) and paths stay below 4.2 bits; base64 of 32 random
    bytes is at about 4.6.
    """
    for match in ASSIGNED.finditer(text):
        value = match[1]
        mixed = any(c.isdigit() for c in value) and any(c.isupper() for c in value) and any(c.islower() for c in value)
        if mixed and _bits(value) > 4.2:
            return True
    return False


def _bits(value: str) -> float:
    """Shannon entropy in bits a character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
