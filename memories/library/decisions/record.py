"""Read a decision record in any of the shapes that tools write, and change its status and links in place. Pure.

A status and a link stand in YAML front matter, in bullets or lines below the title (`* Status: accepted`), or in a
section "Status". An edit changes these lines alone; every other byte stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import takewhile
from typing import Any, Protocol, TypeVar

import yaml

from claudeops.lib.tracked_file.document import FRONT, Document, Line, decode
from memories.capture.text import fold
from memories.library import front_matter

PROPOSED, ACCEPTED, SHIPPED = "proposed", "accepted", "shipped"
SUPERSEDED, DEPRECATED, REJECTED = "superseded", "deprecated", "rejected"
STATUSES: Mapping[str, str] = {
    PROPOSED: "draft pending rfc wip new open idea todo review in-review under-review under-discussion discussion",
    ACCEPTED: "approved decided agreed adopted active accept final current valid",
    SHIPPED: "implemented done live released complete completed in-production deployed",
    SUPERSEDED: "superceded superseeded replaced supplanted overridden amended-by",
    DEPRECATED: "obsolete retired outdated sunset expired archived",
    REJECTED: "declined dismissed withdrawn denied abandoned cancelled canceled wontfix not-accepted",
}
"""The canonical statuses, with other words for them that are found in records."""
WORDS = {word: status for status, words in STATUSES.items() for word in (status, *words.split())}
HOLDS = (ACCEPTED, SHIPPED)
"""The statuses of decisions that hold now."""

NUMBER = re.compile(r"(?:adr|decision|dr)?[-_ ]?0*(\d{1,5})(?=[-_. ]|\Z)", re.IGNORECASE)
_ADR = r"(?:adr|decision)"
TITLE = re.compile(rf"(?:{_ADR}[-_ #]*)?0*(\d{{1,5}})\s*[.:)–—-]\s*(?=\S)|{_ADR}[-_ #]+0*(\d{{1,5}})\s+", re.IGNORECASE)
FACT = re.compile(
    r"(?:[-*+]\s+)?(?:\*\*|__)?(?P<name>[A-Za-z][\w /-]{1,30}?)(?:\*\*|__)?\s*:(?:\*\*|__)?\s*(?P<value>.*)\Z"
)
LINK = re.compile(
    rf"\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)[^)]*\)|\b{_ADR}[-_ #]*0*(?P<plain>\d{{1,5}})\b", re.IGNORECASE
)
BY = re.compile(r"\b(?:superseded|superceded|replaced|amended|obsoleted)[- ]+(?:by|through)\b:?", re.IGNORECASE)
OVER = re.compile(r"\b(?:supersedes|supercedes|replaces|obsoletes)\b:?", re.IGNORECASE)
PATH = re.compile(r"`(?=[^`\n]*\w)([\w.@~*-]*/[\w.@*/{}-]*)`")
ITEM = re.compile(r"[ \t]*- ")
LONGEST_LINE = 2_000
"""Characters of a line that are looked at."""
MOST_PATHS = 40
FACTS = {
    "status": "status",
    "date": "date",
    "last updated": "date",
    "deciders": "deciders",
    "decision-makers": "deciders",
    "decision makers": "deciders",
    "authors": "deciders",
    "tags": "tags",
    "supersedes": "supersedes",
    "superseded-by": "superseded_by",
    "superseded by": "superseded_by",
    "paths": "paths",
    "services": "services",
}
"""What the names of facts mean."""


@dataclass(frozen=True, slots=True)
class Record:
    """One decision. `name` is its file's; `number` None where the name has none. Links are numbers or file names.

    `status` is canonical, "" where `said` is none; `problems` say what could not be read.
    """

    name: str
    number: int | None
    title: str
    status: str
    said: str
    day: date | None
    deciders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return what links name it by."""
        return str(self.number) if self.number is not None else self.name


class Linked(Protocol):
    """A record, read from its file or from the index."""

    @property
    def key(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def superseded_by(self) -> Iterable[object]: ...


One = TypeVar("One", bound=Linked)


def successor_of(record: One, by_key: Mapping[str, One]) -> One | None:
    """Return the decision that holds in place of one that does not; None where there is none, or a circle."""
    seen: set[str] = set()
    while record.status not in HOLDS:
        after = next((by_key[key] for key in map(str, record.superseded_by) if key in by_key), None)
        if after is None or after.key in seen:
            return None
        seen.add(after.key)
        record = after
    return record


def number_of(name: str) -> int | None:
    """Return the number that a file's name begins with; log4brains begins with a day, which is none."""
    match = NUMBER.match(name.removesuffix(".md"))
    return int(match[1]) if match and not re.match(r"\d{8}", name) else None


def parse(name: str, data: bytes) -> Record:
    """Read a record. Never raises: what cannot be read is in `problems`."""
    try:
        document = Document.read(decode(data))
    except ValueError as error:
        return Record(name, number_of(name), name, "", "", None, problems=(f"it cannot be read: {error}",))
    problems = list[str]()
    if document.conflict_line is not None:
        problems.append(f"a merge conflict begins in line {document.conflict_line + 1}")
    facts = _facts(document, problems)
    number, title = number_of(name), _title(document, name)
    if match := TITLE.match(title):
        title = title[match.end() :] or title
    said = "; ".join(facts.get("status", ()))
    status = canonical(said)
    by = _links([*facts.get("superseded_by", ()), *_behind(BY, facts)])
    over = _links([*facts.get("supersedes", ()), *_behind(OVER, facts)])
    if by and status in (ACCEPTED, ""):
        status = SUPERSEDED
    day = next((one for text in facts.get("date", ()) if (one := _day(text))), None) or _day(name)
    if not said:
        problems.append("it has no status")
    elif not status:
        problems.append(f"its status is {said[:60]!r}; the words are {', '.join(STATUSES)}")
    return Record(
        name,
        number,
        title,
        status,
        said,
        day,
        deciders=_several(facts.get("deciders", ())),
        tags=_several(facts.get("tags", ())),
        supersedes=over,
        superseded_by=by,
        paths=_several(facts.get("paths", ()), marks="") or _found_paths(document),
        services=_several(facts.get("services", ())),
        problems=tuple(problems),
    )


def canonical(said: str) -> str:
    """Return the one word for a status, however it is written; "" for one that is none."""
    plain = fold(said).casefold().strip(" .*_`\"'")
    if not plain:
        return ""
    if BY.search(plain):
        return SUPERSEDED
    first = re.split(r"[;,:(\[.]|\s+(?:on|by|since|and|in favou?r of)\s+", plain, maxsplit=1)[0].strip()
    hyphened = "-".join(first.strip("*_`").split())
    return WORDS.get(hyphened) or WORDS.get(hyphened.partition("-")[0], "")


def _behind(words: re.Pattern[str], facts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what stands behind such words in what is said of the status."""
    return [words.split(one, 1)[1] for one in facts.get("status", ()) if words.search(one)]


def _title(document: Document, name: str) -> str:
    top = next((one.text for one in document.headings if one.level == 1), "")
    return fold(top) or fold(next((one.text for one in document.headings), "")) or name.removesuffix(".md")


def _facts(document: Document, problems: list[str]) -> dict[str, list[str]]:
    """Return what is said of a record, by the meaning of the name: front matter, then lines, then sections."""
    facts: dict[str, list[str]] = {}
    for name, value in _front(document, problems):
        facts.setdefault(name, []).append(value)
    seen = set(facts)
    for at, name, value in _lines(document):
        if name not in seen and at < _end_of_head(document):
            facts.setdefault(name, []).append(value)
    for start, end in _status_sections(document):
        shown = (text.strip()[:LONGEST_LINE] for text, _ in document.lines[start + 1 : end])
        texts = [fold(text.lstrip("-*+ ")) for text in shown if text]
        if "status" not in facts:
            facts["status"] = texts
        else:
            facts["status"] += [one for one in texts if BY.search(one) or OVER.search(one)]
    return {name: [one for one in values if one] for name, values in facts.items()}


def _front(document: Document, problems: list[str]) -> Iterator[tuple[str, str]]:
    data, problem = front_matter.read(document)
    problems += [problem] if problem else []
    for key, value in data.items():
        if name := FACTS.get(key.casefold().replace("_", "-")):
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    yield name, fold(str(one))


def _lines(document: Document) -> Iterator[tuple[int, str, str]]:
    for at, (text, _) in enumerate(document.lines):
        match = None if document.classes[at] else FACT.match(text.strip()[:LONGEST_LINE])
        if match and (name := FACTS.get(match["name"].casefold())):
            yield at, name, fold(match["value"].strip("* _"))


def _end_of_head(document: Document) -> int:
    """Return the line of the first section: facts stand before it."""
    return next((one.at for one in document.headings if one.level >= 2), len(document.lines))


def _status_sections(document: Document) -> Iterator[tuple[int, int]]:
    for place, one in enumerate(document.headings):
        if one.level >= 2 and fold(one.text).casefold().rstrip(":") == "status":
            following = document.headings[place + 1 :]
            yield one.at, next((two.at for two in following if two.level <= one.level), len(document.lines))


def _several(values: Sequence[str], marks: str = "*_") -> tuple[str, ...]:
    parts = (part.strip(f" []'\"`{marks}") for value in values for part in re.split(r"[,;]|\s+and\s+", value))
    return tuple(dict.fromkeys(part for part in parts if part and not part.startswith("{")))


def _links(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the records that texts name: by their number, or by the file where that has none."""
    found = []
    for text in texts:
        matches = list(LINK.finditer(text))
        for match in matches:
            target = (match["target"] or "").rpartition("/")[2].partition("#")[0]
            number = number_of(target) if target else int(match["plain"])
            found.append(str(number) if number is not None else target)
        if not matches:
            found += [str(int(one)) for one in re.findall(r"\d{1,5}", text)[:5]]
    return tuple(dict.fromkeys(filter(None, found)))


def _day(text: str) -> date | None:
    if match := re.search(r"(\d{4})-?(\d{2})-?(\d{2})", text):
        try:
            return date(*map(int, match.groups()))
        except ValueError:
            return None
    return None


def _found_paths(document: Document) -> tuple[str, ...]:
    shown = (text[:LONGEST_LINE] for (text, _), kind in zip(document.lines, document.classes, strict=True) if not kind)
    paths = (match[1].rstrip("/") + "/**" * match[1].endswith("/") for text in shown for match in PATH.finditer(text))
    return tuple(dict.fromkeys(paths))[:MOST_PATHS]


# Edits.


def with_status(data: bytes, status: str, *, link: tuple[str, str, str] | None = None) -> bytes:
    """Return a record with another status, where it says it; `link` is (superseded_by or supersedes, text, file).

    Every other byte stays. A record that says none gets it as front matter, or in its section "Status".
    """
    document = Document.read(decode(data))
    if link is None or link[0] == "superseded_by":
        document = _put_status(document, status)
    return (_put_link(document, link) if link else document).to_bytes()


def _front_line(document: Document, name: str) -> int | None:
    for at, kind in enumerate(document.classes):
        match = re.match(r"([\w -]+?)\s*:", document.lines[at][0]) if kind == FRONT else None
        if match and FACTS.get(match[1].casefold().replace("_", "-")) == name:
            return at
    return None


def _put_status(document: Document, status: str) -> Document:
    if (at := _front_line(document, "status")) is not None:
        text, end = document.lines[at]
        return document.put(at, at + 1, [(f"{text.partition(':')[0]}: {status}", end)])
    head = _end_of_head(document)
    for at, name, _ in _lines(document):
        if name == "status" and at < head:
            text, end = document.lines[at]
            before, _, value = text.partition(":")
            gap = re.match(r"(?:\*\*|__)?\s*", value)
            return document.put(at, at + 1, [(f"{before}:{gap[0] if gap else ' '}{status}", end)])
    for start, stop in _status_sections(document):
        for at in range(start + 1, stop):
            text, end = document.lines[at]
            if text.strip() and not BY.search(text) and not OVER.search(text):
                new = status.capitalize() if text.strip()[:1].isupper() else status
                return document.put(at, at + 1, [(new, end)])
        return document.put(start + 1, start + 1, _with_blank(document, status.capitalize()))
    return _with_front(document, "status", status)


def _put_link(document: Document, link: tuple[str, str, str]) -> Document:
    name, text, file = link
    key = name.replace("_", "-")
    if any(kind == FRONT for kind in document.classes):
        number = re.match(r"\d+", text)
        value = number[0] if number else text
        if (at := _front_line(document, name)) is None:
            return _with_front(document, key, value)
        old, end = document.lines[at]
        before = old.partition(":")[2].strip().strip("[]")
        items = list(takewhile(lambda place: ITEM.match(document.lines[place][0]), range(at + 1, len(document.lines))))
        if not before and items:
            item, below = document.lines[items[-1]][0], items[-1] + 1
            return document.put(below, below, [(f"{item[: item.index('-')]}- {value}", end)])
        new = f"[{before}, {value}]" if before else value
        return document.put(at, at + 1, [(f"{old.partition(':')[0]}: {new}", end)])
    words = f"{'Superseded by' if name == 'superseded_by' else 'Supersedes'} [{text}]({file})"
    for start, stop in _status_sections(document):
        last = max((at for at in range(start + 1, stop) if document.lines[at][0].strip()), default=start)
        return document.put(last + 1, last + 1, [("", document.line_end), (words, document.line_end)])
    head = _end_of_head(document)
    for at, fact, _ in _lines(document):
        if fact == "status" and at < head:
            opening = re.match(r"\s*(?:[-*+]\s+)?", document.lines[at][0])
            label = "Superseded by" if name == "superseded_by" else "Supersedes"
            line = f"{opening[0] if opening else ''}{label}: [{text}]({file})"
            return document.put(at + 1, at + 1, [(line, document.line_end)])
    return _with_front(document, key, text)


def _with_blank(document: Document, text: str) -> list[Line]:
    return [("", document.line_end), (text, document.line_end)]


def _with_front(document: Document, key: str, value: str) -> Document:
    end, count = document.line_end, sum(kind == FRONT for kind in document.classes)
    if count:
        return document.put(count - 1, count - 1, [(f"{key}: {value}", end)])
    return document.put(0, 0, [("---", end), (f"{key}: {value}", end), ("---", end), ("", end)])


@dataclass(frozen=True, slots=True)
class Draft:
    """What a new record says."""

    number: int
    title: str
    on: date
    status: str = PROPOSED
    deciders: Sequence[str] = ()
    tags: Sequence[str] = ()
    paths: Sequence[str] = ()
    context: str = ""
    decision: str = ""
    consequences: str = ""
    supersedes: Sequence[int] = field(default_factory=list)


def written(draft: Draft) -> str:
    """Return a new record: front matter, context, decision, consequences."""
    facts = {
        "status": draft.status,
        "date": draft.on.isoformat(),
        "deciders": list(draft.deciders),
        "tags": list(draft.tags),
        "paths": list(draft.paths),
        "supersedes": list(draft.supersedes),
    }
    lines = [f"{name}: {_yaml(value)}" for name, value in facts.items() if value]
    parts = (("Context", draft.context), ("Decision", draft.decision), ("Consequences", draft.consequences))
    body = "\n".join(f"## {title}\n\n{text.strip() or '…'}\n" for title, text in parts)
    return "\n".join(["---", *lines, "---", "", f"# {draft.number}. {fold(draft.title)}", "", body])


def _yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return str(text).strip().removesuffix("\n...")


def file_name(number: int, title: str) -> str:
    slug = re.sub(r"[^\w]+", "-", fold(title).casefold()).strip("-")[:60].rstrip("-")
    return f"{number:04d}-{slug or 'decision'}.md"
