"""Mask in as many bytes: plain text and JSON lines, so that offsets into a file stay valid. Pure."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from claudeops.lib.secrets.masking import PASSES, UNREADABLE, Found, find, label, split_spans
from claudeops.lib.secrets.prefilter import may_hold

LITERAL = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
OPENED = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?')
"""A string, also one that a line of JSON that is cut off leaves open."""
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def mask_bytes(data: bytes) -> tuple[bytes, Counter[str]]:
    """Mask plain text or JSON lines in as many bytes: JSON stays JSON, line breaks stay where they are. Idempotent.

    Returns the same object when there is nothing to mask, and how many values of each kind were masked.
    """
    text = data.decode("utf-8", "surrogateescape")
    counts: Counter[str] = Counter()
    split = [Found(start, end, kind) for start, end, kind, _ in split_spans(text)]
    if not (split or may_hold(_as_read(text))):
        return data, counts
    # What a break splits may stand in two lines of JSON; its pieces are letters, digits and signs that nothing escapes.
    text = _replaced(text, split, counts)
    parts = [_masked(part, is_json, counts) for part, is_json in _parts(text)]
    return ("".join(parts).encode("utf-8", "surrogateescape") if counts else data), counts


def _as_read(text: str) -> str:
    """The text with its letters and slashes as JSON means them, whatever else it is: for `may_hold` alone."""
    if "\\/" in text:
        text = text.replace("\\/", "/")
    if "\\u" in text:
        text = UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace('_tokens"', '"')  # each message counts its tokens


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Each line of JSON by itself, and what stands between them."""
    plain: list[str] = []
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):  # splitlines() also splits at \x85, which JSON may hold
        if _is_json(line):
            if plain:
                yield "".join(plain), False
                plain = []
            yield line, True
        else:
            plain.append(line)
    if plain:
        yield "".join(plain), False


def _is_json(line: str) -> bool:
    if not line.lstrip(" \t\r").startswith(("{", "[", '"')):
        return False
    try:
        json.loads(line)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _masked(text: str, is_json: bool, counts: Counter[str]) -> str:
    covered = _covered_json if is_json else _covered_plain
    for _ in range(PASSES):
        before, text = text, covered(text, counts)
        if text == before:
            return text
    counts[UNREADABLE] += 1
    return _json_stars(text) if is_json else _cover(text, UNREADABLE)


def _covered_plain(text: str, counts: Counter[str]) -> str:
    """Both as it is written and, within strings of a line of JSON that is cut off, as it is read."""
    return _replaced(text, [*_in_strings(text, cut_off=True), *find(text)], counts)


def _covered_json(text: str, counts: Counter[str]) -> str:
    """Only within strings and numbers, never half an escape."""
    strings = [match.span() for match in LITERAL.finditer(text)]
    hits = [*_in_strings(text), *_clipped(text, find(text), strings)]
    return _replaced(text, hits, counts)


def _in_strings(text: str, cut_off: bool = False) -> Iterator[Found]:
    """What is found in each string as it is read, at its place as it is written."""
    if cut_off and "\\" not in text:
        return
    for match in (OPENED if cut_off else LITERAL).finditer(text):
        if match.end() - match.start() < 6 or (cut_off and "\\" not in match[0]):
            continue
        read, places = _read(match[0][1:].removesuffix('"'))
        first = match.start() + 1
        for one in find(read):
            yield Found(first + places[one.start], first + places[one.end], one.kind)


def _read(literal: str) -> tuple[str, list[int] | range]:
    """A string as it is read, and where each of its characters (and its end) stands as it is written."""
    if "\\" not in literal:
        return literal, range(len(literal) + 1)
    parts: list[str] = []
    places: list[int] = []
    position = 0
    for escape in ESCAPE.finditer(literal):
        parts.append(literal[position : escape.start()])
        places.extend(range(position, escape.start() + 1))
        code, letter = escape[1], escape[2]
        parts.append(chr(int(code, 16)) if code else ESCAPED.get(letter, letter))
        position = escape.end()
    parts.append(literal[position:])
    places.extend(range(position, len(literal) + 1))
    return "".join(parts), places


def _clipped(text: str, hits: Iterable[Found], strings: list[tuple[int, int]]) -> Iterator[Found]:
    """The parts of what is found that lie within strings, on whole escapes, and numbers."""
    starts = [start for start, _ in strings]
    for one in hits:
        at = max(0, bisect_right(starts, one.start) - 1)
        inside = False
        for start, end in strings[at:]:
            if start >= one.end:
                break
            first, last = max(one.start, start + 1), min(one.end, end - 1)
            if first < last:
                inside = True
                yield Found(*_whole_escapes(text, start + 1, end - 1, first, last), one.kind)
        if not inside and NUMBER.fullmatch(text, one.start, one.end):
            yield one


def _whole_escapes(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    for escape in ESCAPE.finditer(text, start, end):
        if escape.start() >= last:
            break
        if escape.start() < first < escape.end():
            first = escape.start()
        if escape.start() < last < escape.end():
            last = escape.end()
    return first, last


def _replaced(text: str, hits: Iterable[Found], counts: Counter[str]) -> str:
    parts, position = [], 0
    for one in sorted(hits, key=lambda one: (one.start, -one.end)):
        start = max(position, one.start)
        if start >= one.end:
            continue
        parts += [text[position:start], _cover(text[start : one.end], one.kind)]
        counts[one.kind] += 1
        position = one.end
    return "".join([*parts, text[position:]])


def _cover(value: str, kind: str) -> str:
    """As many bytes as the value has, with its line breaks; digits for a number, which may stand bare in JSON."""
    if NUMBER.fullmatch(value):
        return re.sub(r"\d", "1", value)
    lines = re.split(r"([\n\r])", value)
    return "".join(line if line in ("\n", "\r") else _cover_line(line, kind) for line in lines)


def _cover_line(value: str, kind: str) -> str:
    size = len(value.encode("utf-8", "surrogateescape"))
    mark = label(kind)
    return mark.ljust(size, "*") if len(mark) <= size else "*" * size


def _json_stars(text: str) -> str:
    return LITERAL.sub(lambda match: '"' + _cover_line(match[0][1:-1], UNREADABLE) + '"', text)
