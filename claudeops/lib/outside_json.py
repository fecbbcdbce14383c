"""Parse JSON that comes from outside."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100
"""Levels. What reads a value afterwards calls itself once or more for each."""
TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def loads(text: str | bytes) -> Any:
    """Parse a text. Raises ValueError, also for one that is nested deeper than DEEPEST."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    level = [document]
    for _ in range(DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        if not (level := [value for values in inner for value in values]):
            return document
    raise ValueError(TOO_DEEP)
