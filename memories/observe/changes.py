"""Tell whether a tool call can have changed something, by the table of what only reads (`reading.toml`). Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LONGEST = 2_000
"""Characters of a command that are looked at; a longer one can change something."""
SHELLS = frozenset({"Bash", "bash", "shell", "Shell"})

_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("reading.toml").read_text(encoding="utf-8"))


def _one_of(names: list[str]) -> str:
    return "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in sorted(names, key=len, reverse=True))


TOOL = re.compile(rf"(?:{_one_of(_TABLE['tools'])})\Z|mcp__\w{{1,80}}?__(?:{_one_of(_TABLE['mcp'])})(?![a-z])")
BEFORE = re.compile(
    rf"(?:(?:{_one_of(_TABLE['before'])})(?=\s)(?:\s+-{{1,2}}[\w=.-]{{1,40}}){{0,5}}\s+|[A-Za-z_]\w{{0,40}}=\S{{0,80}}\s+)"
)
TARGET = re.compile(r"(?:docker|kubectl)\s+exec\b|timeout\b")
"""Of these the next word is what it is run in, or for how long."""
READS = re.compile(rf"(?:{_one_of([*_TABLE['commands'], *_TABLE['neutral']])})(?=\s|\Z)")
QUOTED = re.compile(r"'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*\"")
SINGLE = re.compile(r"'[^'\n]*'")
PIECE = re.compile(r"\|\||&&|[;|\n]|(?<![>&\d])&(?![>&\d])")
AWK_WRITES = re.compile(r"\bawk\s[^\n]*(?:>|\bsystem\b)")
SUBSTITUTES = re.compile(r"\$\(|`|<\(")
WRITES = re.compile(
    r"(?<![0-9&=<-])>{1,2}(?!\s{0,2}(?:/dev/null|&))|[0-9]>{1,2}(?!\s{0,2}(?:/dev/null|&))|\s-(?:delete|exec|execdir|ok)\b|"
    r"\bcurl\b[^\n;|&]*?\s(?:-[a-zA-Z]{0,8}[XdFT]|--(?:request|data|form|upload|json))"
)


def can_change(tool: str, text: str) -> bool:
    """Whether a call of `tool` with the main argument `text` is not known to read alone."""
    if tool not in SHELLS:
        return TOOL.match(tool) is None
    if len(text) > LONGEST:
        return True
    bare = QUOTED.sub("''", text)
    if WRITES.search(bare) or AWK_WRITES.search(text) or SUBSTITUTES.search(SINGLE.sub("''", text)):
        return True
    return not all(_reads(piece.strip()) for piece in PIECE.split(bare) if piece.strip())


def _reads(piece: str) -> bool:
    piece = piece.strip("(){} ")
    for _ in range(5):
        before = BEFORE.match(piece)
        if before is None:
            break
        rest = piece[before.end() :]
        piece = rest.partition(" ")[2].strip() if TARGET.match(piece) else rest
    return not piece or READS.match(piece) is not None
