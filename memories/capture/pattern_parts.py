"""Make long regular expressions of short parts. Pure."""

from __future__ import annotations

import re


def words(text: str) -> str:
    """Return a group that matches one of the patterns in `text`, which stand between spaces; `_` is a space."""
    return f"(?:{'|'.join(part.replace('_', ' ') for part in text.split())})"


def any_of(*patterns: str) -> re.Pattern[str]:
    """Compile a pattern that matches where one of the patterns does, in any letter case."""
    return re.compile("|".join(patterns), re.IGNORECASE)
