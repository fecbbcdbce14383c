"""Find credentials and mask them, in texts and in values made of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from claudeops.lib.secrets.prefilter import is_clean, is_disguised, parts
from claudeops.lib.secrets.rules import KINDS, is_secret_under, spans
from claudeops.lib.secrets.skeleton import places, skeleton
from claudeops.lib.secrets.span import HIDDEN, Span
from claudeops.lib.secrets.split import split_spans

PASSES = 8
"""A mask can bring a new value to light, so masking is repeated; what then still holds one is masked as a whole."""

UNREADABLE = "unreadable text"


@dataclass(frozen=True, slots=True)
class Found:
    """A credential: its kind, and where its value begins and ends in the text as given."""

    start: int
    end: int
    kind: str


def label(kind: str) -> str:
    """What stands in the place of a value."""
    return f"[secret: {kind}]"


MASKED = re.compile(rf"\[secret: (?:{'|'.join(sorted(map(re.escape, {*KINDS, UNREADABLE})))})\]|\*{{3,}}")


COVERED = re.compile(r"(\[secret: [^\[\]\n]{1,80}\])\*+")
"""What `mask_bytes` leaves: as many bytes as the value had."""


def find(text: str) -> list[Found]:
    """The credentials of a text in order, not overlapping. Never raises: a text that breaks one is a finding."""
    try:
        return _find(text)
    except Exception:
        return [Found(0, len(text), UNREADABLE)] if text and not MASKED.fullmatch(text) else []


def mask(text: str) -> str:
    """Put `[secret: KIND]` in the place of each value. Idempotent; the same object when there is none."""
    return mask_counted(text)[0]


def mask_counted(text: str) -> tuple[str, dict[str, int]]:
    """`mask`, and how many values of each kind were masked."""
    counts: dict[str, int] = {}  # a Counter takes longer to make than a short text to read
    if _is_clean(text):
        return text, counts
    for _ in range(PASSES):
        if "]*" in text:
            text = COVERED.sub(r"\1", text)
        found = find(text)
        if not found:
            return text, counts
        for one in found:
            counts[one.kind] = counts.get(one.kind, 0) + 1
        text = _masked(text, found)
    if find(text):
        counts[UNREADABLE] = counts.get(UNREADABLE, 0) + 1
        text = label(UNREADABLE)
    return text, counts


def mask_value(value: Any) -> Any:
    """The same shape with every string masked, keys too; what stands under a secret's name is masked as a whole."""
    return _masked_value(value, "")


@lru_cache(maxsize=4096)
def _masked_name(name: str) -> str:
    """Mask a key: most are names of columns, which are masked again and again."""
    return mask(name)


def _find(text: str) -> list[Found]:
    seen = MASKED.sub(lambda match: HIDDEN * len(match[0]), text)
    if is_clean(text):
        return _joined(split_spans(seen))
    found = [_moved(span, offset) for offset, part in parts(seen) for span in spans(part)]
    if is_disguised(seen):
        place = places(seen)
        for offset, part in parts(skeleton(seen)):
            for start, end, kind, rank in spans(part):
                found.append((place(offset + start), place(offset + end - 1) + 1, kind, rank))
    return _joined([*found, *split_spans(seen)])


def _is_clean(text: str) -> bool:
    """Whether a text holds nothing, nor a value that is split; no of one that breaks the look."""
    try:
        return is_clean(text) and next(split_spans(text), None) is None
    except Exception:
        return False


def _moved(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset, span[2], span[3]


def _joined(found: Iterable[Span]) -> list[Found]:
    """Join what overlaps; the kind is that of the surest rule."""
    joined: list[Span] = []
    for start, end, kind, rank in sorted(found):
        if joined and start < joined[-1][1]:
            first, last, earlier, sure = joined[-1]
            if rank < sure:
                earlier, sure = kind, rank
            joined[-1] = (first, max(last, end), earlier, sure)
        elif start < end:
            joined.append((start, end, kind, rank))
    return [Found(start, end, kind) for start, end, kind, _ in joined]


def _masked(text: str, found: Iterable[Found]) -> str:
    parts, done = [], 0
    for one in found:
        parts += [text[done : one.start], label(one.kind)]
        done = one.end
    return "".join([*parts, text[done:]])


def _masked_value(value: Any, name: str) -> Any:
    if isinstance(value, str):
        masked = mask(value)
        kind = is_secret_under(name, value) if name else ""
        if name and masked is not value:
            kind = kind or is_secret_under(name, masked)
        return label(kind) if kind and not MASKED.fullmatch(masked) else masked
    if isinstance(value, dict):
        masked_dict: dict[Any, Any] = {}
        for key, one in value.items():
            said = _masked_name(key) if isinstance(key, str) else key
            name = MASKED.sub("", said) if isinstance(key, str) else ""  # the name within a mask names no value
            while said in masked_dict:  # two keys that are masked alike
                said += "*"
            masked_dict[said] = _masked_value(one, name)
        return masked_dict
    if isinstance(value, list | tuple):
        return type(value)([_masked_value(one, name) for one in value])
    if isinstance(value, int | float) and not isinstance(value, bool) and name:
        kind = is_secret_under(name, str(value))
        return label(kind) if kind else value
    return value
