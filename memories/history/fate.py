"""Say in one sentence what becomes of a memory unless somebody confirms it. Days are those of the active zone."""

from __future__ import annotations

from datetime import datetime

from claudeops.lib import humanize, local_time
from memories.history.forecast import End, Forecast
from memories.models import Inactive, Memory, Verdict

BECAUSE = {
    Inactive.DECAYED: "because nobody confirmed it for too long",
    Inactive.CONTRADICTED: "because it was contradicted",
    Inactive.OPERATOR: "because a person deactivated it",
    Inactive.LOWERED: "because its confidence was set below the threshold",
    Inactive.EXPIRED: "because it expired",
    Inactive.SUPERSEDED: "because another memory replaced it",
    Inactive.MERGED: "because it was merged into another memory",
    Inactive.CLOSED: "because it was stale for too long",
}
CONFIRMED = "unless a session or a person confirms it"


def fate(memory: Memory, ahead: Forecast, now: datetime, inactive_since: datetime | None = None) -> str:
    """Return the sentence: "Fades in 9 days, on Thu 26 Nov, unless a session or a person confirms it.".

    `ahead` is the forecast at `now` (aware). `inactive_since` is when an inactive memory became so, if that is known.
    """
    if memory.verdict == Verdict.HOLD:
        rejected = memory.inactive_reason == Inactive.OPERATOR
        said = "Rejected in review" if rejected else "Held for review"
        return f"{said}{f': {memory.verdict_reason}' if memory.verdict_reason else ''}. No session is told of it."
    if not memory.active:
        since = f" since {local_time.weekday(inactive_since, now)}" if inactive_since else ""
        why = f" {BECAUSE[Inactive(memory.inactive_reason)]}" if memory.inactive_reason in Inactive.values else ""
        return f"Inactive{since}{why}."
    end = ahead.inactive_at
    if end is None:
        if memory.persistent:
            return "Never fades: it is persistent."
        return f"Never fades: {memory.taxonomy} memories of the category {memory.category} do not."
    day = local_time.weekday(end, now)
    fades = "fades" if ahead.end == End.DECAYED else "expires"
    if end <= now:
        return f"It {fades} with the next sweep, as of {day}."
    starts = f"{fades.capitalize()} {humanize.ago(end, now)}, on {day}"
    if ahead.end == End.DECAYED:
        return f"{starts}, {CONFIRMED}."
    return f"{starts}, unless a person renews it."
