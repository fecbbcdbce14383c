"""Find credentials and mask them, in texts and in values made of them. Pure.

Where a value that is split ends is not known: what follows a break is its rest when it looks as random as values do,
so that the text after a value stays. Less is asked of a string that is put together ("a" + "b", a backslash at the
end of a line).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from claudeops.lib.secrets.prefilter import is_clean, is_disguised, parts, places, skeleton
from claudeops.lib.secrets.rules import KINDS, is_secret_under, spans
from claudeops.lib.secrets.span import HIDDEN, SURE, Span
from claudeops.lib.secrets.values import HARMLESS, OBJECT_NAME, PATH, changes

_QUOTE = r"\\{0,3}[\"'`]"
SPLIT = re.compile(
    rf"(?<=[\w+/=.~-])(?:(?P<put>\\\r?\n(?=\S)|{_QUOTE}\s{{0,9}}(?:[+&.]|\\\r?\n)\s{{0,40}}[rbf]?{_QUOTE})"
    rf"|(?:{_QUOTE})?[ \t]{{0,9}}(?:\\?\r?\n|(?:\\{{1,3}}r)?\\{{1,3}}n|<br ?/?>|&\#10;|%0A)"
    rf"[ \t]{{0,80}}(?:[>+|#*]|//)?[ \t]{{0,9}}(?:[rbf]?{_QUOTE})?)(?=[\w+/=.~-])",
    re.ASCII,
)
RUN = re.compile(r"[\w+/=.~-]{1,400}", re.ASCII)
CAMEL = re.compile(r"(?>[A-Z]*+[a-z]{2,}+|[A-Z]{2,}+)++\d{0,3}")
"""Words of a program's names: GitHubActions, web01."""
WINDOW = 400
"""Characters beside a break that may be of one value with it, or its name."""
HEX = re.compile(r"(?:0x)?[0-9a-f]+")


def split_spans(text: str) -> Iterator[Span]:
    """Yield the pieces of values that are split, without what splits them; one may come twice."""
    if "\n" not in text and "\\" not in text and "+" not in text and is_clean(text):
        return
    cuts = [match for match in SPLIT.finditer(text) if _goes_on(text, match)]
    joined: list[str] = []
    places: list[int] = []
    position = 0
    for cut in cuts:
        joined.append(text[position : cut.start()])
        places.append((places[-1] if places else 0) + len(joined[-1]))
        position = cut.end()
    whole = "".join([*joined, text[position:]])
    for place in places:
        offset = max(0, place - WINDOW)
        for start, end, kind, rank in spans(window) if not is_clean(window := whole[offset : place + WINDOW]) else ():
            first, last = bisect_right(places, offset + start), bisect_left(places, offset + end)
            through = cuts[first:last]
            if not through or kind == "private key" or (rank > SURE and not all(cut["put"] for cut in through)):
                continue
            begins = offset + start + (cuts[first].start() - places[first])
            for cut in through:
                yield begins, cut.start(), kind, rank
                begins = cut.end()
            yield begins, begins + offset + end - places[last - 1], kind, rank


def _goes_on(text: str, cut: re.Match[str]) -> bool:
    match = RUN.match(text, cut.end())
    run = match[0].rstrip(".") if match else ""
    rest = re.split("[+/=.~]", run, maxsplit=1)[0]
    lower, upper, digits = (any(map(is_of, rest)) for is_of in (str.islower, str.isupper, str.isdigit))
    varied = changes(rest)
    if lower and upper and len(rest) > 7 and varied >= 0.3 and not CAMEL.fullmatch(rest):
        return True
    if CAMEL.fullmatch(rest) or any(pattern.fullmatch(run) for pattern in (HARMLESS, OBJECT_NAME, PATH)):
        return False
    if HEX.fullmatch(rest) and (len(rest) < 16 or not HEX.fullmatch(text, max(0, cut.start() - 6), cut.start())):
        return False
    if cut["put"]:
        return varied >= (0.25 if len(rest) > 7 else 0.6)
    return digits and (lower or upper) and len(rest) > 7 and varied >= (0.3 if lower else 0.15)


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
        hits = find(text)
        if not hits:
            return text, counts
        for one in hits:
            counts[one.kind] = counts.get(one.kind, 0) + 1
        text = _masked(text, hits)
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
    visible = MASKED.sub(lambda match: HIDDEN * len(match[0]), text)
    if is_clean(text):
        return _joined(split_spans(visible))
    hits = [_moved(span, offset) for offset, part in parts(visible) for span in spans(part)]
    if is_disguised(visible):
        place = places(visible)
        for offset, part in parts(skeleton(visible)):
            for start, end, kind, rank in spans(part):
                hits.append((place(offset + start), place(offset + end - 1) + 1, kind, rank))
    return _joined([*hits, *split_spans(visible)])


def _is_clean(text: str) -> bool:
    """Whether a text holds nothing, nor a value that is split; no of one that breaks the look."""
    try:
        return is_clean(text) and next(split_spans(text), None) is None
    except Exception:
        return False


def _moved(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset, span[2], span[3]


def _joined(hits: Iterable[Span]) -> list[Found]:
    """Join what overlaps; the kind is that of the surest rule."""
    joined: list[Span] = []
    for start, end, kind, rank in sorted(hits):
        if joined and start < joined[-1][1]:
            first, last, earlier, sure = joined[-1]
            if rank < sure:
                earlier, sure = kind, rank
            joined[-1] = (first, max(last, end), earlier, sure)
        elif start < end:
            joined.append((start, end, kind, rank))
    return [Found(start, end, kind) for start, end, kind, _ in joined]


def _masked(text: str, hits: Iterable[Found]) -> str:
    parts, position = [], 0
    for one in hits:
        parts += [text[position : one.start], label(one.kind)]
        position = one.end
    return "".join([*parts, text[position:]])


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
            new_key = _masked_name(key) if isinstance(key, str) else key
            name = MASKED.sub("", new_key) if isinstance(key, str) else ""  # the name within a mask names no value
            while new_key in masked_dict:  # two keys that are masked alike
                new_key += "*"
            masked_dict[new_key] = _masked_value(one, name)
        return masked_dict
    if isinstance(value, list | tuple):
        return type(value)([_masked_value(one, name) for one in value])
    if isinstance(value, int | float) and not isinstance(value, bool) and name:
        kind = is_secret_under(name, str(value))
        return label(kind) if kind else value
    return value
