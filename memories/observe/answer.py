"""Read the observer's answer: segments with their facts, and what could not be read, in words. Pure.

`parse` is the door. The answer is text from a model that has read a transcript: whatever it holds becomes text, a
number within bounds or one of our own words, never anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memories.capture.text import fold
from memories.llm.reader import (
    BROKEN,
    LONGEST_NOTHING,
    Unread,
    bare,
    cut,
    in_one_line,
    json_values,
    without_marks,
)
from memories.models import FactKind, Priority
from memories.observe.instructions import CATEGORY_WORDS, GATE_WORDS, KIND_WORDS, PRIORITY_SIGNS, PRIORITY_WORDS

T = TypeVar("T")

LONGEST_LINE = 4_000
LONGEST_FACT = 2_000
LONGEST_NARRATIVE = 1_500
MOST_SEGMENTS = 50
MOST_FACTS = 200
HIGHEST_TURN = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FoundFact:
    """One statement. `gate` is allow, hold or discard, "" when it is missing or unreadable; `category` likewise.

    `confidence` is 0..1. `turn` is the number of the turn that it names as its source.
    """

    text: str
    priority: Priority = Priority.GREEN
    kind: FactKind = FactKind.NOTE
    gate: str = ""
    confidence: float | None = None
    category: str = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """One topic: a narrative of one line, the first and the last of its turns, and its facts."""

    narrative: str
    first_turn: int | None = None
    last_turn: int | None = None
    facts: tuple[FoundFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an answer holds. `unread` says what of it could not be read, each a sentence for people."""

    segments: tuple[FoundSegment, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether the answer says something, or that there is nothing: else the observer is to be asked again."""
        return bool(self.segments) or not self.unread


TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}(observations?|segment|narrative|facts?)\b([^<>]{0,500})>", re.IGNORECASE)
ESCAPED_TAG = re.compile(r"&lt;\s{0,3}(?:observations?|segment|facts?)\b", re.IGNORECASE)
COMMENT = re.compile(r"<!--[^\n]{0,500}?-->|<!--|-->")
BEFORE_TEXT = re.compile(r"(?:[\s:|>]|[–—-](?=\s)|[*_`]{1,3}(?=\s))+")
NOTHING = re.compile(
    r"\b(?:nothing|none|empty|no (?:new |durable |lasting )?(?:observations?|facts?|segments?|memor(?:y|ies)))\b", re.I
)
REFUSAL = re.compile(
    r"\b(?:sorry|can(?:no|['’])t|cannot|unable|refuse|decline|apolog\w+|error|overloaded|(?:not|please) provided?)\b",
    re.I,
)
"""A refusal may hold the word "nothing" as well."""
END_TAG = re.compile(r"<\s{0,3}/\s{0,3}(?:observations?|segment)\b", re.IGNORECASE)
JSON_START = re.compile(r"[{\[]\s*[\"{\[]")

BULLET = re.compile(r"(?:[-*+•‣◦▪●·–—→]|\(?\d{1,3}[.):])(?:\s+|(?=[^\w\s.*+-]))|(?:\[[ xX]\])\s+")
NAMES = {
    "gate": r"gate|verdict|write",
    "confidence": r"confidence|conf|score|certainty",
    "category": r"category|cat|topic",
    "priority": r"priority|prio|level|severity|importance",
    "kind": r"type|kind",
    "turn": r"source[-_ ]?turn|turns?",
}
NAME = "|".join(f"(?P<{name}>{words})" for name, words in NAMES.items())
VALUE = (
    r"\"([^\"\n]{0,80})\"|'([^'\n]{0,80})'|“([^”\n]{0,80})”|`([^`\n]{0,80})`|"
    r"(\d{1,3},\d{1,6}(?!\d)|[^\s,;|\[\](){}<>\"'`]{1,80})"
)
PAIR = re.compile(rf"[\"'*_`]{{0,3}}\b(?:{NAME})\b[\"'*_`]{{0,3}}\s{{0,3}}[=:]\s{{0,3}}(?:{VALUE})", re.IGNORECASE)
BETWEEN = re.compile(r"[\s,;|/&·]{0,5}(?:and\s{1,3})?")
OPENING, CLOSING = "[({", "])}"
AFTER_PAIRS = re.compile(r"[\s,;*_]{0,5}[\])}]?[`*_]{0,3}")
LONGEST_REMARK = 200
FIRST_TURN = re.compile(r"\b(?:first|from|start)[-_ ]?(?:turn)?\s{0,3}[=:]\s{0,3}[\"']?(\d{1,10})", re.IGNORECASE)
LAST_TURN = re.compile(r"\b(?:last|to|end)[-_ ]?(?:turn)?\s{0,3}[=:]\s{0,3}[\"']?(\d{1,10})", re.IGNORECASE)
TURNS = re.compile(
    r"\b(?:turns?|range|lines?)\s{0,3}[=:]\s{0,3}[\"'\[(]{0,2}\s{0,3}(\d{1,10})(?:\s{0,3}(?:[-–—,:]|\.\.|to)\s{0,3}(\d{1,10}))?",
    re.I,
)
NUMBER = re.compile(r"(\d{0,3}(?:[.,]\d{1,6})?)\s?(%?)(?:\s?/\s?1(?:\.0+)?)?\Z")
WORD_SIGN = re.compile(
    r"\*{0,2}[\[(]?:?\*{0,2}(?:priority\s{0,2}[=:]\s{0,2})?"
    r"([A-Za-z][\w ]{0,18}?)\*{0,2}(?:[\])]:?|:(?=[\s*]|\Z))\*{0,2}"
)
LABEL = re.compile(
    r"(?:#{1,6}\s{0,3})?\**\s?(narrative|summary|facts?|observations?)\s?\**\s?:?\**:?\s?", re.IGNORECASE
)
NO_FACTS = re.compile(r"[-*•\s(\[]{0,4}(?:none|no facts?(?: here)?|nothing|n/a|-|empty)[.)\]\s]{0,3}\Z", re.IGNORECASE)
CHILD = re.compile(r"<(\w{2,20})>\s{0,20}([^<>]{0,2000})</\1>")
"""An element of a fact or a segment that stands for an attribute, or for the text."""
TEXTS = ("text", "fact", "statement", "content", "observation")
SEGMENT_TURNS = re.compile(r"<turns?>\s{0,5}([\d\s,–-]{1,40})</turns?>", re.IGNORECASE)
LAST_TURN_NAMED = re.compile(
    r"\s{0,3}[\[(](?:source:?\s)?turns?\s{0,2}#?(\d{1,10})(?:\s?[-–]\s?\d{1,10})?[\])]\.?\Z", re.I
)
TURN_NUMBER = re.compile(r"\d{1,10}")


def parse(answer: str) -> Parsed:
    """Return what `answer` says. Linear in its length, of which LONGEST characters are read; never raises."""
    reading = _Reading()
    text = reading.begin(answer, TAG, ESCAPED_TAG)
    if not text.strip():
        reading.cannot("the answer is empty")
        return reading.parsed()
    if TAG.search(text):
        reading.tags(text)
    elif reading.json_values(text):
        return reading.parsed()
    else:
        reading.lines(text)
    if not reading.segments and not reading.unread and not _says_nothing(text):
        reading.cannot(f"no observation was found in the answer, which begins: {cut(fold(text))}")
    return reading.parsed()


@dataclass(slots=True)
class _Fact:
    """A fact as it is being read; `indent` is the column of its bullet."""

    text: str
    given: dict[str, str]
    indent: int = 0


@dataclass(slots=True)
class _Segment:
    attributes: str = ""
    is_tagged: bool = False
    narrative: list[str] = field(default_factory=list)
    facts: list[_Fact] = field(default_factory=list)


@dataclass(slots=True)
class _Reading(Unread):
    segments: list[_Segment] = field(default_factory=list)
    facts: int = 0

    def segment(self, attributes: str = "", *, is_tagged: bool = False) -> _Segment:
        if len(self.segments) >= MOST_SEGMENTS:
            self.cannot(f"there are more than {MOST_SEGMENTS} segments; what followed was left out")
            return _Segment()
        self.segments.append(_Segment(attributes, is_tagged))
        return self.segments[-1]

    # The three shapes: tags, JSON, lines.

    def tags(self, text: str) -> None:
        """Read text with tags. A tag that is missing is understood from those that are there."""
        current: _Segment | None = None
        inside, at, attributes = "", 0, ""
        for tag in TAG.finditer(text):
            current = self._piece(text[at : tag.start()], inside, attributes, current)
            at, attributes = tag.end(), ""
            closes, name, rest = bool(tag[1]), tag[2].lower(), tag[3]
            closed_itself = rest.rstrip().endswith("/")
            if name.startswith("observation"):
                inside, current = "", None
            elif name == "segment":
                inside, current = "", None if closes else self.segment(rest, is_tagged=True)
            elif closes or closed_itself:
                inside = "facts" if name == "fact" and not closed_itself else ""
            else:
                if name == "narrative" and current and (current.narrative or (current.facts and not current.is_tagged)):
                    current = None  # the segment before was not closed
                current = current or self.segment()
                inside, attributes = name, rest
        self._piece(text[at:], inside, attributes, current)
        if self.segments and not self.facts and not END_TAG.search(text):
            self.segments.clear()
            self.cannot("the answer ends before its first fact")

    def _piece(self, text: str, inside: str, attributes: str, current: _Segment | None) -> _Segment | None:
        """Take in the text between two tags; return the segment that it belongs to."""
        if not text.strip():
            return current
        if current is not None and (turns := SEGMENT_TURNS.search(text)):
            current.attributes += f" turns={turns[1].strip()}"
            text = SEGMENT_TURNS.sub("", text)
        if inside == "fact" and current is not None:
            self.fact_element(current, text, attributes)
            return current
        for line, fact in self._read_lines(text, all_are_facts=inside == "facts"):
            if fact is not None:
                current = current or self.segment()
                self.add(current, fact)
            elif current is not None and (inside == "narrative" or (not current.narrative and not current.facts)):
                current.narrative.append(line)
        return current

    def lines(self, text: str) -> None:
        """Read an answer without any tag: lines that look like facts, and the line before them as the narrative."""
        current: _Segment | None = None
        before: list[str] = []
        for line, fact in self._read_lines(text, all_are_facts=False):
            if fact is not None:
                if current is None:
                    current = self.segment()
                    current.narrative = [each for each in before if not _says_nothing(each)][-1:]
                self.add(current, fact)
            else:
                before.append(LABEL.sub("", line, count=1))

    def _read_lines(self, text: str, *, all_are_facts: bool) -> Iterator[tuple[str, _Fact | None]]:
        """Yield each line, with the fact that it begins. What continues a fact is added to it."""
        last: _Fact | None = None
        for raw in text.split("\n"):
            if len(raw) > LONGEST_LINE:
                self.cannot(f"a line has {len(raw):,} characters: {cut(fold(raw[:200]))}")
                continue
            line = COMMENT.sub("", raw).strip()
            if not line or line.startswith(("```", "~~~")) or LABEL.fullmatch(line):
                last = None if not line else last
                continue
            if all_are_facts and NO_FACTS.match(line):
                continue
            indent = len(raw) - len(raw.lstrip())
            fact = _as_fact(line, indent)
            marked = bool(fact.given) if all_are_facts else _is_marked(line, fact)
            if last is not None and not marked and (not last.text or indent > last.indent):
                last.text = f"{last.text} {fact.text}".strip()
            elif marked or all_are_facts:
                last = fact
                yield line, fact
            else:
                yield line, None

    def fact_element(self, segment: _Segment, text: str, attributes: str) -> None:
        """Read `<fact gate="allow" …>text</fact>`, or `<fact><gate>allow</gate>…<text>text</text></fact>`."""
        children = {name.lower(): value.strip() for name, value in CHILD.findall(text)}
        content = next((children[name] for name in TEXTS if name in children), CHILD.sub(" ", text))
        fact = _as_fact(" ".join(content.split())[:LONGEST_LINE], 0)
        fact.given = _string_pairs(children) | _pairs(attributes) | fact.given
        self.add(segment, fact)

    def json_values(self, text: str) -> bool:
        """Read the JSON values with segments or facts; return whether there was one."""
        has_values, is_broken, whole = False, False, list[Mapping[str, Any]]()
        for start, value in json_values(text):
            if len(self.segments) >= MOST_SEGMENTS:
                break
            if value is BROKEN:
                is_broken = is_broken or bool(JSON_START.match(text, start))
            elif (segments := _segments_in(value)) is not None:
                has_values = True
                for each in segments[: MOST_SEGMENTS + 1]:
                    self._json_segment(each)
            elif isinstance(value, Mapping) and any(value.get(name) for name in TEXTS):
                whole.append(value)
        if is_broken and whole:
            self._json_segment({"facts": whole})
            has_values = True
        begins = bool(JSON_START.match(text.lstrip("`jsonJSON \n")))
        if is_broken and (has_values or begins):
            self.cannot("its JSON is cut off or broken; what is whole in it was read")
        elif begins and not has_values and not _says_nothing(text):
            self.cannot(f"its JSON holds no facts; it begins: {cut(fold(text))}")
        return has_values or begins

    def _json_segment(self, value: Mapping[str, Any]) -> None:
        segment = self.segment()
        segment.narrative = [_string(value.get("narrative") or value.get("summary"))]
        named = ((name, _numbers(value.get(name))) for name in ("turns", "first_turn", "last_turn"))
        segment.attributes = " ".join(f"{name}={numbers}" for name, numbers in named if numbers)
        facts = value.get("facts") or []
        if not isinstance(facts, list):
            self.cannot(f"segment {len(self.segments)}: its facts are no list")
        for each in facts if isinstance(facts, list) else []:
            if isinstance(each, Mapping):
                attributes = _string_pairs(each)
                text = next((_string(each[name]) for name in TEXTS if each.get(name)), "")
                self.add(segment, _Fact(text[:LONGEST_LINE], attributes))
            elif isinstance(each, str):
                self.add(segment, _as_fact(each[:LONGEST_LINE].strip(), 0))
            else:
                self.cannot(f"segment {len(self.segments)}: a fact is neither an object nor a text")

    def add(self, segment: _Segment, fact: _Fact) -> None:
        if self.facts >= MOST_FACTS:
            self.cannot(f"there are more than {MOST_FACTS} facts; what followed was left out")
            return
        self.facts += 1
        segment.facts.append(fact)

    # From what was read to what is returned.

    def parsed(self) -> Parsed:
        segments = []
        for number, segment in enumerate(self.segments, start=1):
            narrative = _plain(LABEL.sub("", " ".join(segment.narrative).strip(), count=1))
            if len(narrative) > LONGEST_NARRATIVE:
                self.cannot(f"the narrative of segment {number} was cut after {LONGEST_NARRATIVE:,} characters")
                narrative = narrative[: LONGEST_NARRATIVE - 1].rstrip() + "…"
            facts = [
                self._fact(fact, f"segment {number}, fact {place}") for place, fact in enumerate(segment.facts, start=1)
            ]
            first, last = _turns(segment.attributes)
            valid_facts = tuple(fact for fact in facts if fact is not None)
            if narrative or valid_facts:
                segments.append(FoundSegment(narrative, first, last, valid_facts))
        return Parsed(tuple(segments), tuple(self.unread))

    def _fact(self, read: _Fact, where: str) -> FoundFact | None:
        text = _plain(read.text, shows_hidden=True)
        if not fold(text):
            self.cannot(f"{where}: it has no text")
            return None
        if len(text) > LONGEST_FACT:
            self.cannot(f"{where}: it is longer than {LONGEST_FACT:,} characters: {cut(text)}")
            return None
        attributes = read.given
        gate = self._word("gate", attributes, GATE_WORDS, where) or ""
        category = self._word("category", attributes, CATEGORY_WORDS, where) or ""
        kind = self._word("kind", attributes, KIND_WORDS, where) if "kind" in attributes else None
        priority = self._word("priority", attributes, PRIORITY_WORDS, where) if "priority" in attributes else None
        if priority is None:
            priority = PRIORITY_OF[kind] if kind else Priority.GREEN
        return FoundFact(
            text=text,
            priority=priority,
            kind=kind or KIND_OF[priority],
            gate=gate,
            confidence=self._confidence(attributes.get("confidence"), where),
            category=category,
            turn=_turn(attributes.get("turn", "")),
        )

    def _word(self, name: str, given: Mapping[str, str], words: Mapping[str, T], where: str) -> T | None:
        word = given.get(name)
        if not word:
            self.cannot(f"{where}: it has no {name}")
            return None
        value = words.get(_key(word))
        if value is None:
            self.cannot(f"{where}: the {name} “{cut(fold(word), 40)}” is not known")
        return value

    def _confidence(self, said: str | None, where: str) -> float | None:
        if not said:
            return None
        match = NUMBER.match(said.strip())
        if match is None or not match[1]:
            self.cannot(f"{where}: the confidence “{cut(fold(said), 40)}” is no number")
            return None
        value = float(match[1].replace(",", "."))
        if match[2] or value > 1:
            value /= 100
        if value > 1:
            self.cannot(f"{where}: the confidence “{cut(fold(said), 40)}” is not between 0 and 1")
            return None
        return round(value, 4)


KIND_OF = {Priority.RED: FactKind.CONSTRAINT, Priority.YELLOW: FactKind.PATTERN, Priority.GREEN: FactKind.NOTE}
PRIORITY_OF = {
    FactKind.CORRECTION: Priority.RED,
    FactKind.CONSTRAINT: Priority.RED,
    FactKind.REQUIREMENT: Priority.RED,
    FactKind.PATTERN: Priority.YELLOW,
    FactKind.NOTE: Priority.GREEN,
}


def _as_fact(line: str, indent: int) -> _Fact:
    """Read one line: bullet, sign of priority, attributes at its beginning or end, text. Unmarked: nothing is given."""
    attributes: dict[str, str] = {}
    rest = line
    for _ in range(6):  # bullet, emphasis, sign and attributes stand in any order
        start = rest
        if not attributes and (bullet := BULLET.match(rest)):
            rest = rest[bullet.end() :].lstrip()
        rest = _take_sign(rest, attributes)
        rest = _take_pairs(rest, attributes).lstrip()
        if attributes:
            rest = BEFORE_TEXT.sub("", rest, count=1) if BEFORE_TEXT.match(rest) else rest
        if rest == start:
            break
    rest = _take_last_pairs(rest, attributes)
    return _Fact(rest.strip(), attributes, indent)


def _is_marked(line: str, fact: _Fact) -> bool:
    """Whether a line among others is a fact: a sentence of prose may begin with "Important:"."""
    return bool(fact.given.keys() - {"priority"}) or any(sign in line[:12] for sign in PRIORITY_SIGNS)


def _take_sign(text: str, attributes: dict[str, str]) -> str:
    """Take an emoji or a word of priority from the beginning."""
    bare = text.lstrip("*_ ")
    for sign, priority in PRIORITY_SIGNS.items():
        if bare.startswith(sign):
            attributes.setdefault("priority", priority)
            return bare[len(sign) :].lstrip("\ufe0f\u200d *_")
    word = None if "priority" in attributes else WORD_SIGN.match(text)
    if word and _key(word[1]) in PRIORITY_WORDS:
        attributes.setdefault("priority", word[1])
        return text[word.end() :].lstrip()
    return text


def _take_pairs(text: str, attributes: dict[str, str]) -> str:
    """Take `[gate=allow confidence=0.92 …]` from the beginning; without brackets a gate or two attributes at least."""
    bare = text.lstrip("`*_")
    quote = len(text) - len(bare) if bare[:1] in tuple(OPENING) else 0
    bracketed = text[quote : quote + 1] in tuple(OPENING)
    at, additions, pairs = quote + bracketed, dict[str, str](), 0
    while True:
        gap = BETWEEN.match(text, at)
        pair = PAIR.match(text, gap.end() if gap else at)
        if pair is None:
            break
        at, pairs = _take_pair(pair, additions), pairs + 1
    if not pairs or not (bracketed or "gate" in additions or pairs > 1) or (not bracketed and "gate" in attributes):
        return text
    if bracketed:  # what else stands in the bracket is a remark of the model
        end = text.find(CLOSING[OPENING.index(text[quote])], at, at + LONGEST_REMARK)
        if end > at:
            _add(additions, _pairs(text[at:end]))
            at = end
    _add(attributes, additions)
    closing = AFTER_PAIRS.match(text, at)
    return text[closing.end() if closing else at :]


def _take_pair(pair: re.Match[str], attributes: dict[str, str]) -> int:
    name = next(name for name in NAMES if pair[name])
    value = next((one for one in pair.groups()[len(NAMES) :] if one is not None), "")
    attributes.setdefault(name, _value(value))
    return pair.end()


def _value(text: str) -> str:
    """Return the word for a sign of priority ("🔴 must" → "red"), and anything else as it is."""
    text = text.strip()
    return next((word for sign, word in PRIORITY_SIGNS.items() if text.startswith(sign)), text)


def _take_last_pairs(text: str, attributes: dict[str, str]) -> str:
    """Take the attributes from the end of a line: in brackets, or at least two of them without."""
    if turn := LAST_TURN_NAMED.search(text):
        attributes.setdefault("turn", turn[1])
        text = text[: turn.start()]
    while text and text[-1] in CLOSING:
        start = text.rfind(OPENING[CLOSING.index(text[-1])])
        if start < 0:
            return text
        additions = dict[str, str]()
        if _take_pairs(text[start:], additions).strip() or not additions:
            return text
        _add(attributes, additions)
        text = text[:start].rstrip()
    pairs = list(PAIR.finditer(text))
    tail = len(text.rstrip(" ,;."))
    first = len(pairs)
    for pair in reversed(pairs):
        if text[pair.end() : tail].strip(" ,;|"):
            break
        tail, first = pair.start(), first - 1
    if len(pairs) - first < 2:
        return text
    for pair in pairs[first:]:
        _take_pair(pair, attributes)
    return text[:tail].rstrip(" ,;|–—-")


def _add(attributes: dict[str, str], additions: Mapping[str, str]) -> None:
    for name, value in additions.items():
        attributes.setdefault(name, value)


def _pairs(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for pair in PAIR.finditer(text):
        _take_pair(pair, attributes)
    return attributes


def _string_pairs(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a fact in JSON."""
    attributes: dict[str, str] = {}
    for key, each in value.items():
        for name, words in NAMES.items():
            if re.fullmatch(words, str(key), re.IGNORECASE) and isinstance(each, str | int | float):
                attributes.setdefault(name, _value(str(each)[:80]))
    return attributes


def _segments_in(value: Any) -> list[Mapping[str, Any]] | None:
    """Return the segments of a JSON value; None when it has neither segments nor facts."""
    for _ in range(3):
        if isinstance(value, list):
            maps = [each for each in value if isinstance(each, Mapping)]
            if any("facts" in each or "narrative" in each for each in maps):
                return maps
            if any("text" in each or "fact" in each for each in maps):
                return [{"facts": maps}]
            return [] if value == [] else None
        if not isinstance(value, Mapping):
            return None
        if "facts" in value or "narrative" in value:
            return [value]
        inner = next((value[name] for name in ("observations", "segments", "segment") if name in value), None)
        if inner is None:
            return None
        value = inner
    return None


def _numbers(value: Any) -> str:
    """Return the turns that JSON names: "12-18", 12, or a list of both."""
    if isinstance(value, list):
        return "-".join(str(each) for each in value[:2] if isinstance(each, int) and 0 < each <= HIGHEST_TURN)
    return str(value)[:40] if isinstance(value, str | int) else ""


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _turns(attributes: str) -> tuple[int | None, int | None]:
    if match := TURNS.search(attributes):
        first, last = int(match[1]), int(match[2] or match[1])
    else:
        from_, to = FIRST_TURN.search(attributes), LAST_TURN.search(attributes)
        if from_ is None:
            return None, None
        first = int(from_[1])
        last = int(to[1]) if to else first
    if max(first, last) > HIGHEST_TURN or min(first, last) < 1:
        return None, None
    return min(first, last), max(first, last)


def _turn(text: str) -> int | None:
    match = TURN_NUMBER.search(text)
    number = int(match[0]) if match else 0
    return number if 1 <= number <= HIGHEST_TURN else None


def _key(text: str) -> str:
    """Normalise a word for its table: "jc:Rules & Conventions" → "rules-conventions"."""
    plain = text.strip().lower().removeprefix("jc:").removeprefix("jc-")
    return "-".join(word for word in re.split(r"[^a-z0-9]+", plain) if word and word != "and")


def _plain(text: str, *, shows_hidden: bool = False) -> str:
    """One line without entities, without emphasis around all of it. `shows_hidden` keeps what is invisible.

    The gate needs it: who hides characters in a text hides what the text says.
    """
    return without_marks(in_one_line(text) if shows_hidden else fold(in_one_line(text)))


def _says_nothing(text: str) -> bool:
    rest = bare(text, TAG)
    return not rest or (len(rest) <= LONGEST_NOTHING and bool(NOTHING.search(rest)) and not REFUSAL.search(rest))
