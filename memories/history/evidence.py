"""Describe the evidence of a change for people. Pure; unknown keys are shown under their own names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    found = list(_match(match)) if isinstance(match, Mapping) else _rest({"match": match} if match else {})
    given = {name: value for name, value in evidence.items() if name not in ("text", "match", "score")}
    first = [line for name, value in given.items() if name in KNOWN for line in KNOWN[name](value)]
    score = evidence.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1:
        first.append(EvidenceLine("similarity", f"{round(100 * score)} % of the content of both texts is shared"))
    elif score is not None:
        found += _rest({"score": score})
    return tuple(first + found + _rest({name: value for name, value in given.items() if name not in KNOWN}))


def _match(match: Mapping[str, Any]) -> Iterator[EvidenceLine]:
    said = dict(match)
    said.pop("similarity", None)  # the same number as the score
    if why := said.pop("why", ""):
        yield EvidenceLine("decided by", str(why))
    yield from _quantities(said.pop("quantities", []))
    yield from _stance(said.pop("stance", []))
    if order := said.pop("order", []):
        yield EvidenceLine("order", "; ".join(map(_plain, _list(order))))
    for name, about in (("negation", "negated"), ("antonyms", "opposites"), ("names", "names")):
        yield from _sides(about, said.pop(name, None))
    yield from _words("in both", said.pop("shared", []))
    yield from _words("only in the known text", said.pop("only_known", []))
    yield from _words("only in the new text", said.pop("only_new", []))
    if matcher := said.pop("matcher", ""):
        yield EvidenceLine("compared by", MATCHERS.get(str(matcher), _plain(matcher)))
    yield from _rest(said)


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
    known, new = (_some(value.get(side, [])) for side in ("known", "new"))
    if known or new:
        yield EvidenceLine(about, f"{known or 'nothing'} before, {new or 'nothing'} now")


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
        known = tuple(one for one in ids if isinstance(one, int) and not isinstance(one, bool) and one > 0)
        more = f"and {len(known) - MOST} more" if len(known) > MOST else ""
        return [EvidenceLine(about, more, known[:MOST])] if known else _rest({about: value})

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
