"""What every Markdown file under git may hold beside its text: marks of a merge, and front matter. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

MARK = re.compile(r"(<{7,}|\|{7,}|={7,}|>{7,})(?: .*)?\Z", re.DOTALL)
"""A line that git puts between two sides: seven signs, more in a merge of merges. Others write such lines, too."""
KEY = re.compile(r"""["'\w][^:=]*(?::(?:\s|\Z)|\s*=)|\[""")
"""How the first line of data begins, in YAML and in TOML."""


def conflict_line(texts: Sequence[str], hidden: Sequence[object]) -> int | None:
    """Return the line (from 0) at which a merge conflict begins that nobody has resolved; None without one.

    `texts` are lines without their ends, `hidden` says which stand in a code fence or a comment: marks that all stand
    there are an example. A line of `=` alone underlines a heading; the first or the last mark alone was left behind.
    """
    begin, is_shown = None, False
    for at, text in enumerate(texts):
        mark = MARK.match(text.removeprefix("\ufeff"))
        sign = mark[1][0] if mark else " "
        if sign in "<>" and not hidden[at]:
            return at if begin is None else begin
        if sign == "<":
            begin, is_shown = at, False
        elif begin is not None and sign in "|=":
            is_shown = is_shown or not hidden[at]
        elif begin is not None and sign == ">":
            if is_shown:
                return begin
            begin = None
    return None


def front_matter(texts: Sequence[str]) -> int:
    """Return how many lines at the beginning are front matter, in YAML or TOML, its delimiters included.

    A rule may begin a document as well: what follows is data when its first line is a key.
    """
    first = texts[0].removeprefix("\ufeff").rstrip() if texts else ""
    closing = {"---": ("---", "..."), "+++": ("+++",)}.get(first, ())
    end = next((at for at, text in enumerate(texts) if at and text.rstrip() in closing), 0)
    inside = [text for text in texts[1:end] if text.strip() and not text.lstrip().startswith("#")]
    is_data = not inside or KEY.match(inside[0]) is not None
    return end + 1 if end and is_data and not any(map(MARK.match, inside)) else 0
