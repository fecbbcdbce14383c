"""Describe a change of a memory in one sentence. Pure; what was said is quoted and cut, and never trusted as markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from claudeops.lib.diff import GONE, NEW, SAME, word_diff
from memories.capture.text import fold
from memories.models import Change, MemoryChange, Source
from memories.models.change import JUDGE

QUOTED = 140
"""Most characters of a quotation."""
REASON = 200
ECHO = "It was told this memory"
"""How the reason of a confirmation begins that counts up to 0.9 only (`memories.store.ECHO`)."""
TOLD = "It was told so"
"""The same where a memory is not raised but merged with what is said again (`memories.store.TOLD`)."""
REJECTED = "Rejected in review."
"""How the reason of a rejection begins (`memories.web.review`)."""
OWN_WORDS = frozenset({"Back", "Both", "It", "Memory", "Memories"})
"""How the product's own reasons begin; after a colon they go on in lower case. A person's words stay as typed."""
BACK = "Back to "
NOBODY, AGENT, SESSION, SYSTEM = "Somebody", "agent:", "session:", "system"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a sentence. `kind` is "session" or "memory" for a link to the row `pk`, "" for plain text."""

    text: str
    kind: str = ""
    pk: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """How a change moved the confidence: `by` with its sign ("+0.10"), or what it stays at or begins with."""

    text: str
    level: str = ""
    """ok for more, bad for less, "" for neither."""


def sentence(change: MemoryChange) -> tuple[Part, ...]:
    """Return the sentence of a change as parts; joined, their texts are "Session 12 confirmed it."."""
    return (*_joined(_WORDS.get(change.kind, _changed)(change)), Part("."))


def plain(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts)


def moved(change: MemoryChange) -> Moved:
    """Return how the confidence moved. A change without confidence columns moved nothing."""
    before, after = confidences(change)
    if change.kind == Change.CREATED and after is not None:
        return Moved(f"{after:.2f}")
    if before is None or after is None or before == after or change.kind == Change.DELETED:
        return Moved("")
    sign, level = ("+", "ok") if after > before else ("−", "bad")
    return Moved(f"{sign}{abs(after - before):.2f}", level)


def confidences(change: MemoryChange) -> tuple[float | None, float | None]:
    """Return the confidence before and after a change; None where the change does not state it."""
    return _number(change.before, "confidence"), _number(change.after, "confidence")


def folded_decay(latest_first: Sequence[MemoryChange]) -> str:
    """Return the sentence of several decays in a row: "Time lowered it 3 times from 0.75 to 0.45."."""
    first, last = latest_first[-1], latest_first[0]
    before, after = _number(first.before, "confidence"), _number(last.after, "confidence")
    span = f" from {before:.2f} to {after:.2f}" if before is not None and after is not None else ""
    return f"Time lowered it {len(latest_first)} times{span}{_unconfirmed(last)}{_ended(last)}."


def quote(text: Any, most: int = QUOTED) -> str:
    shown = fold(str(text))
    return f"“{shown if len(shown) <= most else shown[: most - 1] + '…'}”"


def _joined(parts: Sequence[Part | str]) -> list[Part]:
    return [Part(part) if isinstance(part, str) else part for part in parts if part]


def _who(change: MemoryChange) -> list[Part | str]:
    if change.session_id is not None:
        return [Part(f"Session {change.session_id}", "session", change.session_id)]
    if change.actor.startswith(AGENT):
        return [f"A session of {change.actor.removeprefix(AGENT)}"]
    if change.actor.startswith(JUDGE):
        return [f"The model {change.actor.removeprefix(JUDGE)}"]
    if change.actor.startswith(SESSION):
        return [f"The session {change.actor.removeprefix(SESSION)[:8]}"]
    return [{"": NOBODY, SYSTEM: "The system"}.get(change.actor, change.actor)]


def _memory(pk: Any) -> Part:
    is_id = isinstance(pk, int) and not isinstance(pk, bool) and pk > 0
    return Part(f"memory {pk}", "memory", pk) if is_id else Part("another memory")


def _number(columns: Any, name: str) -> float | None:
    value = columns.get(name) if isinstance(columns, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _evidence(change: MemoryChange) -> Mapping[str, Any]:
    return change.evidence if isinstance(change.evidence, Mapping) else {}


def _ended(change: MemoryChange) -> str:
    """Say whether the memory became active or inactive by the change."""
    active = (change.after or {}).get("active")
    if active == (change.before or {}).get("active"):
        return ""
    return "; since then it is inactive" if active is False else "; it is active again" if active else ""


def _reason(text: str) -> str:
    """Return a reason as the end of a sentence: a colon before it, no full stop. Only its own words become lower."""
    shown = fold(text).rstrip(".")
    shown = shown if len(shown) <= REASON else shown[: REASON - 1] + "…"
    first = shown.partition(" ")[0]
    return f": {first.lower() if first in OWN_WORDS else first}{shown[len(first) :]}" if shown else ""


def _created(change: MemoryChange) -> list[Part | str]:
    after = change.after or {}
    held = after.get("verdict") == "hold"
    why = f"; it is held{_reason(str(after.get('verdict_reason') or ''))}" if held else ""
    if change.session_id is None and after.get("source") == Source.IMPORT:
        return [f"An import by {change.actor} created it" if change.actor else "An import created it", why]
    agent = change.actor.removeprefix(AGENT) if change.actor.startswith(AGENT) and change.session_id else ""
    return [*_who(change), f" of {agent}" if agent else "", " created it", why]


def _reinforced(change: MemoryChange) -> list[Part | str]:
    if TOLD in change.reason:
        return [*_who(change), " said it again; it was told it, so that counts for nothing"]
    if "merged_count" in (change.after or {}):
        return [*_who(change), " said it again, which is merged into it", _ended(change)]
    parts: list[Part | str] = [*_who(change), " confirmed it"]
    if ECHO in change.reason:
        parts.append("; it was told it, so it raises it to 0.90 at most")
    elif _number(change.after, "confidence") is None:
        parts.append("; the confidence stays")
    return [*parts, _ended(change)]


def _contradicted(change: MemoryChange) -> list[Part | str]:
    evidence = _evidence(change)
    text = evidence.get("text")
    by: list[Part | str] = [" by ", _memory(evidence["by"])] if evidence.get("by") else []
    return [*_who(change), " contradicted it", *by, f": {quote(text)}" if text else "", _ended(change)]


def _decayed(change: MemoryChange) -> list[Part | str]:
    if change.step:
        return [f"The maintenance marked it as stale: never recalled nor told{_unconfirmed(change, ', ')}"]
    before, after = confidences(change)
    span = f" from {before:.2f} to {after:.2f}" if before is not None and after is not None else ""
    return [f"Time lowered it{span}{_unconfirmed(change)}{_ended(change)}"]


def _unconfirmed(change: MemoryChange, before: str = ": ") -> str:
    """Say for how long nobody had confirmed the memory, with `before` before it; "" when the reason does not say it."""
    days = _days_since(change, "not confirmed since ")
    return f"{before}not confirmed for {days}" if days else ""


def _days_since(change: MemoryChange, words: str) -> str:
    """Return the days from the day that follows `words` in the reason that the sweep wrote: "23 days"; "" for none."""
    _, separator, rest = change.reason.rpartition(words)
    try:
        since = datetime.fromisoformat(rest[:10]).replace(tzinfo=change.at.tzinfo)
    except ValueError:
        return ""
    days = (change.at - since) // timedelta(days=1)
    return f"{days} day{'' if days == 1 else 's'}" if separator and days >= 0 else ""


def _expired(change: MemoryChange) -> list[Part | str]:
    if change.step:
        days = _days_since(change, "stale since ")
        stale = f": stale for {days}" if days else ""
        return [f"The maintenance closed it{stale}{_unconfirmed(change, ', ' if days else ': ')}{_ended(change)}"]
    return ["It expired; since then it is inactive"]


def _edited(change: MemoryChange) -> list[Part | str]:
    before, after = change.before or {}, change.after or {}
    edits = [_EDITS[name](before.get(name), after.get(name)) for name in _EDITS if name in after]
    if not edits:
        return [*_who(change), " edited it", _ended(change)]
    joined = edits[0] if len(edits) == 1 else f"{', '.join(edits[:-1])} and {edits[-1]}"
    return [*_who(change), f" {joined}", _ended(change)]


def _text(before: Any, after: Any) -> str:
    """Quote what was replaced when it is one place, else the new text."""
    old, new = str(before or ""), str(after or "")
    pieces = word_diff(old, new)
    gone = [piece.text for piece in pieces if piece.kind == GONE]
    came = [piece.text for piece in pieces if piece.kind == NEW]
    if any(piece.kind == SAME for piece in pieces) and len(gone) <= 1 and len(came) <= 1:
        removed, added = fold(gone[0]) if gone else "", fold(came[0]) if came else ""
        if removed and added:
            return f"changed {quote(removed)} to {quote(added)}"
        if removed or added:
            return f"added {quote(added)}" if added else f"removed {quote(removed)}"
    return f"changed the text to {quote(new)}"


def _set(label: str, empty: str) -> Callable[[Any, Any], str]:
    return lambda before, after: f"changed the {label} from {_value(before, empty)} to {_value(after, empty)}"


def _value(value: Any, empty: str) -> str:
    if value in (None, "", []):
        return empty
    if isinstance(value, float):
        return f"{value:.2f}"
    text = fold(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def _day(value: Any) -> str:
    return str(value)[:10] if value else "never"


# In the order in which a sentence names them.
_EDITS: dict[str, Callable[[Any, Any], str]] = {
    "observation": _text,
    "service": _set("service", "general"),
    "category": _set("category", "none"),
    "confidence": _set("confidence", "none"),
    "project_id": _set("project", "none"),
    "agent": _set("agent", "none"),
    "tags": _set("tags", "none"),
    "relevance_score": _set("relevance", "none"),
    "surface": _set("window", "none"),
    "persistent": lambda before, after: "exempted it from fading" if after else "let it fade again",
    "expires_at": lambda before, after: f"set its end to {_day(after)}" if after else "took its end away",
}


def _confidence_set(change: MemoryChange) -> list[Part | str]:
    before, after = confidences(change)
    span = f" from {before:.2f} to {after:.2f}" if before is not None and after is not None else ""
    return [*_who(change), f" set the confidence{span}", _ended(change)]


def _deactivated(change: MemoryChange) -> list[Part | str]:
    if change.reason.startswith(REJECTED):
        return [*_who(change), " rejected it in review", _reason(change.reason.removeprefix(REJECTED))]
    return [*_who(change), " deactivated it", _reason(change.reason)]


def _reactivated(change: MemoryChange) -> list[Part | str]:
    return [*_who(change), " activated it again", _reason(change.reason)]


def _persistent_set(change: MemoryChange) -> list[Part | str]:
    words = _EDITS["persistent"](None, (change.after or {}).get("persistent"))
    return [*_who(change), f" {words}", _reason(change.reason)]


def _approved(change: MemoryChange) -> list[Part | str]:
    return [*_who(change), " approved it", _reason(change.reason)]


def _merged(change: MemoryChange) -> list[Part | str]:
    evidence = _evidence(change)
    if evidence.get("into"):
        return [*_who(change), " merged it into ", _memory(evidence["into"])]
    count = evidence.get("count")
    many = count if isinstance(count, int) and count > 1 else 0
    return [*_who(change), f" merged {many:,} memories into it" if many else " merged another memory into it"]


def _superseded(change: MemoryChange) -> list[Part | str]:
    return [*_who(change), " replaced it by ", _memory(_evidence(change).get("by"))]


def _backed(change: MemoryChange) -> list[Part | str]:
    return [*_who(change), " confirmed it", _reason(change.reason)]


def _credited(change: MemoryChange) -> list[Part | str]:
    helped = _evidence(change).get("helped")
    end = " and completed" if helped is True else " and failed" if helped is False else ""
    return [*_who(change), f" used it{end}", _ended(change)]


def _restored(change: MemoryChange) -> list[Part | str]:
    if change.reason.startswith(BACK):
        return [*_who(change), f" put it back to {fold(change.reason.removeprefix(BACK)).rstrip('.')}", _ended(change)]
    return [*_who(change), " restored an earlier state", _reason(change.reason), _ended(change)]


def _deleted(change: MemoryChange) -> list[Part | str]:
    return [*_who(change), " deleted it", _reason(change.reason)]


def _changed(change: MemoryChange) -> list[Part | str]:
    return [*_who(change), " changed it", _reason(change.reason)]


_WORDS: dict[str, Callable[[MemoryChange], list[Part | str]]] = {
    Change.CREATED: _created,
    Change.REINFORCED: _reinforced,
    Change.CONTRADICTED: _contradicted,
    Change.DECAYED: _decayed,
    Change.EXPIRED: _expired,
    Change.EDITED: _edited,
    Change.CONFIDENCE_SET: _confidence_set,
    Change.DEACTIVATED: _deactivated,
    Change.REACTIVATED: _reactivated,
    Change.PERSISTENT_SET: _persistent_set,
    Change.APPROVED: _approved,
    Change.MERGED: _merged,
    Change.SUPERSEDED: _superseded,
    Change.BACKED: _backed,
    Change.CREDITED: _credited,
    Change.RESTORED: _restored,
    Change.DELETED: _deleted,
}


CHANNELS = {
    "text": "a marker in its text",
    "structured": "its structured answer",
    "human": "typed by a person",
    "import": "an import",
    "rules": "rules over runs",
    "observer": "the observer, from the whole session",
}
MATCHERS = {"lexical": "words and values"}
VERDICTS = {"same": "the same", "different": "different", "unsure": "perhaps the same"}
MOST = 12
"""Words and memories listed; the rest are counted."""

LONGEST = 200


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    about: str
    text: str = ""
    memories: tuple[int, ...] = ()


def evidence_lines(evidence: Mapping[str, Any]) -> tuple[EvidenceLine, ...]:
    """Describe all of `evidence` except the text that arrived, which pages show by itself."""
    match = evidence.get("match")
    lines = list(_match(match)) if isinstance(match, Mapping) else _rest({"match": match} if match else {})
    others = {name: value for name, value in evidence.items() if name not in ("text", "match", "score")}
    first = [line for name, value in others.items() if name in KNOWN for line in KNOWN[name](value)]
    score = evidence.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1:
        first.append(EvidenceLine("similarity", f"{round(100 * score)} % of the content of both texts is shared"))
    elif score is not None:
        lines += _rest({"score": score})
    return tuple(first + lines + _rest({name: value for name, value in others.items() if name not in KNOWN}))


def _match(match: Mapping[str, Any]) -> Iterator[EvidenceLine]:
    fields = dict(match)
    fields.pop("similarity", None)  # the same number as the score
    if why := fields.pop("why", ""):
        yield EvidenceLine("decided by", str(why))
    yield from _quantities(fields.pop("quantities", []))
    yield from _stance(fields.pop("stance", []))
    if order := fields.pop("order", []):
        yield EvidenceLine("order", "; ".join(map(_plain, _list(order))))
    for name, about in (("negation", "negated"), ("antonyms", "opposites"), ("names", "names")):
        yield from _sides(about, fields.pop(name, None))
    yield from _words("in both", fields.pop("shared", []))
    yield from _words("only in the known text", fields.pop("only_known", []))
    yield from _words("only in the new text", fields.pop("only_new", []))
    if matcher := fields.pop("matcher", ""):
        yield EvidenceLine("compared by", MATCHERS.get(str(matcher), _plain(matcher)))
    yield from _rest(fields)


def _quantities(value: Any) -> Iterator[EvidenceLine]:
    for one in _list(value):
        if isinstance(one, Mapping):
            verdict = VERDICTS.get(str(one.get("verdict")), _plain(one.get("verdict")))
            yield EvidenceLine("amounts", f"{_plain(one.get('known'))} before, {_plain(one.get('new'))} now: {verdict}")


def _stance(value: Any) -> Iterator[EvidenceLine]:
    for one in _list(value):
        if isinstance(one, Mapping):
            word = _word(str(one.get("word", "")))
            yield EvidenceLine(
                "says of " + word, f"“{_plain(one.get('known'))}” before, “{_plain(one.get('new'))}” now"
            )


def _sides(about: str, value: Any) -> Iterator[EvidenceLine]:
    if not isinstance(value, Mapping):
        yield from _rest({about: value} if value else {})
        return
    old, new = (_some(value.get(side, [])) for side in ("known", "new"))
    if old or new:
        yield EvidenceLine(about, f"{old or 'nothing'} before, {new or 'nothing'} now")


def _words(about: str, value: Any) -> Iterator[EvidenceLine]:
    if some := _some(value):
        yield EvidenceLine(about, some)


def _some(value: Any) -> str:
    words = [_word(str(word)) for word in _list(value)]
    more = f" and {len(words) - MOST} more" if len(words) > MOST else ""
    return ", ".join(words[:MOST]) + more


def _word(word: str) -> str:
    """The matcher writes a compared unit as #unit."""
    return f"the {word[1:]}" if word.startswith("#") else word


def _memories(about: str) -> Callable[[Any], list[EvidenceLine]]:
    def told(value: Any) -> list[EvidenceLine]:
        ids = [one.get("id") if isinstance(one, Mapping) else one for one in _list(value)]
        memory_ids = tuple(one for one in ids if isinstance(one, int) and not isinstance(one, bool) and one > 0)
        more = f"and {len(memory_ids) - MOST} more" if len(memory_ids) > MOST else ""
        return [EvidenceLine(about, more, memory_ids[:MOST])] if memory_ids else _rest({about: value})

    return told


def _channel(value: Any) -> list[EvidenceLine]:
    return [EvidenceLine("arrived by", CHANNELS.get(str(value), _plain(value)))]


KNOWN: dict[str, Callable[[Any], list[EvidenceLine]]] = {
    "channel": _channel,
    "by": _memories("contradicted by"),
    "contradicts": _memories("contradicts"),
    "merged": _memories("merged memories"),
    "into": _memories("merged into"),
    "origin": lambda value: [EvidenceLine("read from the transcript", _plain(value))],
    "runs": lambda value: [EvidenceLine("sessions", _some(value))],
    "helped": lambda value: [EvidenceLine("the session", "completed" if value is True else "failed")],
    "count": lambda value: [EvidenceLine("memories merged", _plain(value))],
    "before_change": lambda value: [EvidenceLine("restored to before", f"change {_plain(value)}")],
    "undone": lambda value: [EvidenceLine("undoes", f"the action that began with change {_plain(value)}")],
    "to_change": lambda value: [EvidenceLine("restored to after", f"change {_plain(value)}")],
}


def _rest(values: Mapping[str, Any]) -> list[EvidenceLine]:
    return [
        EvidenceLine(name.replace("_", " "), _plain(value)) for name, value in values.items() if value not in (None, "")
    ]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        text = "; ".join(f"{str(name).replace('_', ' ')} {_plain(part)}" for name, part in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(_plain(part) for part in value)
    else:
        text = "nothing" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value in (None, "") else [value]
