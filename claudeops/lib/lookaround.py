"""Take the lookarounds out of a pattern of Python's `re`, so that RE2 can say no first. Pure.

RE2 knows no lookaround and is a hundred times as fast. What is left of a pattern matches wherever the pattern does in
printable ASCII, and elsewhere too: its no is final, its yes is not. (In other text `\\w`, `\\b` and case differ.)
"""

from __future__ import annotations

import re

_ATOM = r"[^()\[\\]|\\.|\[(?:[^\]\\]|\\.)*\]"
_GROUP = rf"\((?:{_ATOM}|\((?:{_ATOM})*\))*\)"
_LOOKAROUND = re.compile(rf"\(\?<?[!=](?:{_ATOM}|{_GROUP})*\)")
"""With groups down to two levels within; what is nested deeper is left, and RE2 refuses the pattern."""


def without_lookaround(pattern: str) -> str:
    """Return the pattern without its lookarounds: it matches all that the pattern matches, and more."""
    return _LOOKAROUND.sub("", pattern)
