"""Read values together that a line break, a backslash or a quote splits, and give each piece its place. Pure.

Where a value ends is not known: what follows a break is its rest when it looks as random as values do, so that the text
after a value stays. Less is asked of a string that is put together ("a" + "b", a backslash at the end of a line).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from claudeops.lib.secrets.prefilter import is_clean
from claudeops.lib.secrets.rules import spans
from claudeops.lib.secrets.span import SURE, Span
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
    done = 0
    for cut in cuts:
        joined.append(text[done : cut.start()])
        places.append((places[-1] if places else 0) + len(joined[-1]))
        done = cut.end()
    whole = "".join([*joined, text[done:]])
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
    found = RUN.match(text, cut.end())
    run = found[0].rstrip(".") if found else ""
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
