"""Select the lines of an agent's text that are its own words: no fenced code, no quotation. Pure.

All readers of markers (memories, events, cooldowns) use it; it knows no marker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LINE_BREAK = re.compile(r"\r\n|\n|\r")
# CommonMark's fence, also in list items at any depth: models indent code under list items.
FENCE = re.compile(r"^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(`{3,}|~{3,})(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The lines to read, numbered from 1, and the counts of skipped lines.

    `skipped` holds the skipped lines, so that a reader can count the markers in them.
    """

    lines: list[tuple[int, str]]
    skipped_quoted: int = 0
    skipped_fenced: int = 0
    skipped: list[str] = field(default_factory=list)


def accepted_lines(text: str) -> Accepted:
    """The lines of `text` that are the agent's own words.

    Skipped are lines inside ``` and ~~~ fences, with the fences (an unclosed fence reaches to the end), and lines
    that begin with `>`, which quote somebody else.
    """
    lines: list[tuple[int, str]] = []
    skipped: list[str] = []
    quoted = fenced = 0
    fence = ""
    for number, line in enumerate(LINE_BREAK.split(text), start=1):
        if not fence and line.lstrip().startswith(">"):
            quoted += 1
            skipped.append(line)
            continue
        found = FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not ("`" in found[1] and "`" in found[2]):  # ```code``` on one line opens nothing
            fence = found[1]
        else:
            lines.append((number, line))
            continue
        fenced += 1
        skipped.append(line)
    return Accepted(lines, quoted, fenced, skipped)
