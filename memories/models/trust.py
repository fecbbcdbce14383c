"""What CLAUDEOPS_TRUST keeps out of prompts until it is confirmed: the one rule, as a condition and in words.

`open` keeps nothing back, `guarded` what is provisional, `strict` whatever nobody confirmed.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Q

OPEN, GUARDED, STRICT = "open", "guarded", "strict"

FROM_OUTSIDE = "from a session that had read outside text"
SAID_OUTSIDE = "said by outside text"
WHATEVER = (SAID_OUTSIDE, FROM_OUTSIDE)
"""The reasons of a memory that is provisional whatever it is about; other reasons are topics."""
JOINT = "; "
"""Between the reasons of a provisional memory."""

_KEPT_BACK = {
    OPEN: Q(pk__in=()),
    GUARDED: ~Q(provisional="") & Q(confirmed_at=None),
    STRICT: Q(confirmed_at=None),
}
_KEPT_BACK_SQL = {
    OPEN: "1 = 0",
    GUARDED: "(NOT (memories.provisional = '') AND memories.confirmed_at IS NULL)",
    STRICT: "(memories.confirmed_at IS NULL)",
}


def mode() -> str:
    value: str = settings.CLAUDEOPS_TRUST
    return value


def kept_back_condition() -> Q:
    """Return the condition of a memory that waits for its confirmation."""
    return _KEPT_BACK[mode()]


def kept_back_sql() -> str:
    """Return the same condition as SQL on the table `memories`, without parameters."""
    return _KEPT_BACK_SQL[mode()]


def kept_back(memory: Any) -> str:
    """Say why a memory (provisional, confirmed_at, source, exposure) waits for its confirmation; "" if it does not."""
    if mode() == OPEN or memory.confirmed_at is not None:
        return ""
    if memory.provisional:
        parts = memory.provisional.split(JOINT)
        why = "no person and no output of the own machines said it"
        if SAID_OUTSIDE in parts:
            why = "outside text said it"
        elif memory.source == "import":
            why = "nobody can tell who said it"
        elif FROM_OUTSIDE in parts or memory.exposure == "outside":
            why = "its session had read outside text"
        about = JOINT.join(part for part in parts if part not in WHATEVER)
        return f"unconfirmed: {why}" + (f", and it is about {about}" if about else "")
    return "unconfirmed: CLAUDEOPS_TRUST=strict wants a person or an independent session" if mode() == STRICT else ""
