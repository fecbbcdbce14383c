"""Read the reflector's answer: proposals, and what could not be read, in words. Pure.

`parse` is the door. The answer is text from a model that has read hostile text: whatever it holds becomes text, a
number within bounds or one of our own words, never anything else.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memories.capture.text import fold
from memories.llm.reader import LONGEST, LONGEST_NOTHING, Unread, bare, in_one_line, json_values, without_marks
from memories.models.curating import ProposalKind
from memories.taxonomy import KNOWLEDGE

LONGEST_CHANGE = 1_000
MOST_PROPOSALS = 100
MOST_NUMBERS = 200

KINDS: Mapping[str, ProposalKind] = {
    word: kind
    for kind, words in (
        (ProposalKind.ADD, "add addition new create insert append write"),
        (ProposalKind.CHANGE, "change update edit modify replace rewrite revise correct merge amend"),
        (ProposalKind.REMOVE, "remove delete drop removal deletion prune retire"),
    )
    for word in words.split()
}
WORDS = "|".join(KINDS)
SECTIONS = {
    "rules": "rules-conventions",
    "conventions": "rules-conventions",
    "architecture": "system-architecture",
    "system": "system-architecture",
    "memory": "memory-system",
    "people": "people-relationships",
    "relationships": "people-relationships",
    "project": "projects",
    "preference": "preferences",
    "operation": "operations",
    "ops": "operations",
}

NAMES = "proposals?|kind|type|action|entry|target|section|category|change|text|content|evidence|observations?|sources?"
CODE = re.compile(r"`{1,3}([^`]+)`{1,3}")
"""A text that is code as a whole; one that only begins or ends with code keeps its marks."""
TAG = re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}({NAMES}|add|remove|old|new)\b([^<>]{{0,500}})>", re.IGNORECASE)
ESCAPED = re.compile(r"&lt;\s{0,3}(?:proposals?|change)\b", re.IGNORECASE)
COMMENT = re.compile(r"<!--.{0,500}?-->|<!--|-->|<!\[CDATA\[|\]\]>", re.DOTALL)
PAIR = re.compile(
    rf"\b({NAMES})\b[\"']?\s{{0,3}}[=:]\s{{0,3}}(?:\"([^\"]{{0,400}})\"|'([^']{{0,400}})'|\[([\d\s,]{{1,200}})\]|([^\s\"'>/]{{1,80}}))",
    re.IGNORECASE,
)
SAME = {
    "type": "kind",
    "action": "kind",
    "category": "section",
    "target": "entry",
    "old": "entry",
    "text": "change",
    "content": "change",
    "new": "change",
    "observation": "evidence",
    "observations": "evidence",
    "source": "evidence",
    "sources": "evidence",
}
"""Other names of the elements."""
PREFIX = re.compile(
    rf"\W{{0,3}}({WORDS})\b\*{{0,2}}\s{{0,3}}(?:(?:entry|number|no\.?)\s{{0,3}})?#?(\d{{1,4}})?\*{{0,2}}"
    r"(?:\s?:\*{0,2}\s{1,3}|\s{1,3}[–—-]\s{1,3})",
    re.IGNORECASE,
)
"""The kind in the change itself: "add: …", "change 4: …", "**Remove** entry #7: …"."""
LONE = re.compile(
    rf"\W{{0,3}}({WORDS})\b\s{{0,3}}(?:entry|number|no\.?|#|\s){{0,4}}(\d{{1,4}})\W{{0,3}}\Z", re.IGNORECASE
)
ARROW = re.compile(r"\s{0,3}(?:→|⇒|⟶|->|=>|-->)\s{0,3}")
BULLET = re.compile(r"(?:[-*+•‣–—]\s{1,3}|#{1,6}\s{1,3}|>\s{1,3}|\d{1,3}[.)]\s{1,3})")
DAY = re.compile(r"[(\[]?\d{4}-\d{2}-\d{2}[)\]]?\s{0,3}:?\s{0,3}")
RANGE = re.compile(r"(\d{1,6})\s{0,3}(?:-|–|—|\.\.|to|bis)\s{0,3}#?(\d{1,6})")
NUMBER = re.compile(r"\d{1,6}")
NOTHING = re.compile(
    r"\b(?:nothing|none|empty|no (?:new |further |useful )?(?:proposals?|changes?|updates?|entr(?:y|ies)))\b", re.I
)


@dataclass(frozen=True, slots=True)
class FoundProposal:
    """One proposed change. `section` is a category of knowledge, "" where none can be read.

    `entry` is the number of the entry that it changes or removes, None where it names its text (`target`) or nothing.
    `text` is what it would be, as it was written but in one line; of a removal it is the reason. `evidence` are the
    numbers of observations that it names.
    """

    kind: ProposalKind
    section: str
    text: str
    entry: int | None = None
    target: str = ""
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an answer holds. `unread` says what of it could not be read, each a sentence for people.

    `is_answer` is False where neither a proposal nor the word that there is none was found: it was in vain.
    """

    proposals: tuple[FoundProposal, ...] = ()
    unread: tuple[str, ...] = ()
    is_answer: bool = True


def parse(answer: str) -> Parsed:
    """Return what `answer` says. Linear in its length, of which LONGEST characters are read; never raises."""
    reading = _Reading()
    text = COMMENT.sub(" ", reading.begin(answer, TAG, ESCAPED))
    raws = list(_in_tags(text)) if TAG.search(text) else list(_in_json(text))
    for place, raw in enumerate(raws[:MOST_PROPOSALS], start=1):
        reading.take(raw, place)
    if len(raws) > MOST_PROPOSALS:
        reading.cannot(f"there are more than {MOST_PROPOSALS} proposals; what followed was left out")
    says_nothing = _says_nothing(text)
    if not raws and not says_nothing:
        begins = fold(answer[:120])
        reading.cannot(f"no proposal was found in the answer, which begins: {begins}" if begins else "it is empty")
    return Parsed(tuple(reading.found), tuple(reading.unread), bool(reading.found) or (not raws and says_nothing))


@dataclass(slots=True)
class _Reading(Unread):
    found: list[FoundProposal] = field(default_factory=list)

    def take(self, raw: Mapping[str, str], place: int) -> None:
        """Make a proposal of what was read of one."""
        where, change = f"proposal {place}", raw.get("change", "")
        kind, entry, change = _kind(raw.get("kind", ""), change)
        number, target = _entry(raw.get("entry", ""))
        number = entry if number is None and not target else number
        if kind in (ProposalKind.CHANGE, None) and number is None and not target and len(ARROW.split(change, 1)) == 2:
            kind = kind or ProposalKind.CHANGE
            before, change = ARROW.split(change, 1)
            number, target = _entry(before)
        if kind is None:
            kind = ProposalKind.CHANGE if number is not None or target else ProposalKind.ADD
        if kind == ProposalKind.REMOVE and number is None and not target:
            number, target = _entry(change)
        text = _plain(change)
        if kind != ProposalKind.REMOVE and not fold(text):
            self.cannot(f"{where}: it has no text")
            return
        if kind != ProposalKind.ADD and number is None and not target:
            self.cannot(f"{where}: it names no entry to {kind}")
            return
        if len(text) > LONGEST_CHANGE:
            if kind != ProposalKind.REMOVE:
                self.cannot(f"{where}: its text is longer than {LONGEST_CHANGE:,} characters")
                return
            text = text[: LONGEST_CHANGE - 1] + "…"
        section = _section(raw.get("section", ""))
        if not section and kind == ProposalKind.ADD:
            self.cannot(f"{where}: its section is none of the categories")
        is_add = kind == ProposalKind.ADD
        entry_of = (None, "") if is_add else (number, target[:LONGEST_CHANGE])
        self.found.append(FoundProposal(kind, section, text, *entry_of, _numbers(raw.get("evidence", ""))))


# The two shapes: tags, JSON.


def _in_tags(text: str) -> Iterator[dict[str, str]]:
    """Yield the parts of each proposal by name. An end that is missing is where the next element begins."""
    current: dict[str, str] = {}
    inside = ""
    at = 0
    for tag in TAG.finditer(text):
        between, closes, name, rest = text[at : tag.start()], bool(tag[1]), tag[2].lower(), tag[3]
        at = tag.end()
        if between.strip() and inside:
            current[inside] = f"{current.get(inside, '')} {between}".strip()
        if name.startswith("proposal"):
            if _is_one(current):
                yield current
            current, inside = {}, ""
            if name == "proposal" and not closes:
                current |= {SAME.get(key, key): value for key, value in _pairs(rest)}
            continue
        kind = name if name in ("add", "remove") else ""
        name = "change" if kind or name == "change" else SAME.get(name, name)
        if closes or rest.rstrip().endswith("/"):
            inside = "" if name == inside or not closes else inside
            continue
        if name == "change" and current.get("change"):  # the proposal before was not closed
            yield current
            current = {}
        inside = name
        current |= {SAME.get(key, key): value for key, value in _pairs(rest)}
        if kind:
            current["kind"] = kind
    rest = text[at:]
    if inside and rest.strip():
        current[inside] = f"{current.get(inside, '')} {rest}".strip()
    if _is_one(current):
        yield current


def _is_one(current: Mapping[str, str]) -> bool:
    return any(current.get(name, "").strip() for name in ("change", "entry", "kind"))


def _pairs(attributes: str) -> Iterator[tuple[str, str]]:
    for name, *values in PAIR.findall(attributes):
        yield name.lower(), next((value for value in values if value), "")


def _in_json(text: str) -> Iterator[dict[str, str]]:
    """Yield the parts of each proposal of the JSON values in a text."""
    for _, value in json_values(text):
        for one in _listed(value):
            lowered = {str(key).lower(): _string(part) for key, part in one.items()}
            yield {SAME.get(key, key): part for key, part in lowered.items() if part}


def _listed(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, Mapping) and isinstance(value.get("proposals"), list | Mapping):
        return _listed(value["proposals"])
    if isinstance(value, Mapping) and isinstance(value.get("proposal"), list | Mapping):
        return _listed(value["proposal"])
    rows: Sequence[Any] = value if isinstance(value, list) else [value]
    return [one for one in rows if isinstance(one, Mapping) and {"change", "text", "content", "entry"} & set(one)]


def _string(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value[:MOST_NUMBERS] if isinstance(one, int | str))
    return str(value)[:LONGEST] if isinstance(value, str | int) and not isinstance(value, bool) else ""


# The parts.


def _kind(value: str, change: str) -> tuple[ProposalKind | None, int | None, str]:
    """Return the kind, the number of an entry that the change itself names, and the rest of the change."""
    word = re.search(rf"\b({WORDS})", value.lower())
    kind = KINDS[word[1]] if word else None
    change = _plain(change)
    if match := LONE.match(change):
        return kind or KINDS[match[1].lower()], int(match[2]), ""
    if match := PREFIX.match(change):
        named = KINDS[match[1].lower()]
        # "Change: …" before a text is a label where the kind is known; "Update: …" may begin a sentence of its own.
        if kind is None or named == kind:
            return named, int(match[2]) if match[2] else None, change[match.end() :]
    return kind, None, change


def _entry(value: str) -> tuple[int | None, str]:
    """Return the number of an entry or else its text."""
    text = _plain(value)
    if match := re.fullmatch(r"(?:entry|number|no\.?|#|\s|\[|\(){0,4}(\d{1,4})[\])]?\.?", text, re.IGNORECASE):
        return int(match[1]), ""
    text = re.sub(r"\A(?:entry|old|from|text)\s{0,3}:\s{0,3}", "", text, flags=re.IGNORECASE)
    return None, fold(text)


def _section(value: str) -> str:
    plain = fold(html.unescape(value)).lower().replace("jc:", "")
    words = [word for word in re.split(r"[^a-z]+", plain) if word and word not in ("and", "section", "the")]
    slug = "-".join(words)
    if slug in KNOWLEDGE.categories:
        return slug
    return next((SECTIONS.get(word, word) for word in words if SECTIONS.get(word, word) in KNOWLEDGE.categories), "")


def _numbers(value: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for first, last in RANGE.findall(value):
        if int(first) <= int(last) <= int(first) + MOST_NUMBERS:
            numbers.update(range(int(first), int(last) + 1))
    numbers.update(int(number) for number in NUMBER.findall(value))
    return tuple(sorted(numbers))[:MOST_NUMBERS]


def _plain(text: str) -> str:
    """One line without entities, bullet, day and emphasis around all of it. What is invisible stays, for the gate."""
    line = in_one_line(text)
    line = match[1].strip() if (match := CODE.fullmatch(line)) else line
    for pattern in (BULLET, DAY, BULLET):
        if match := pattern.match(line):
            line = line[match.end() :]
    return without_marks(line)


def _says_nothing(text: str) -> bool:
    has_frame = bool(
        re.search(
            r"<\s{0,3}proposals?\b|\"proposals\"\s{0,3}:\s{0,3}\[\s{0,3}\]|\A\s*(?:```\w*\s*)?\[\s*\]", text, re.I
        )
    )
    rest = bare(text, TAG)
    return has_frame or (0 < len(rest) <= LONGEST_NOTHING and bool(NOTHING.search(rest)))
