"""Compare three sides of an agent's file: as both sides had it at the last sync, as the file is, as the memories are.

Pure. What changed on one side only goes to the other; what changed on both is a conflict, and the file keeps its text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from memories.files.document import Document, Edits, Entry, same_name
from memories.files.sections import SectionSet
from memories.models.agent_file import ConflictKind

ALIKE = 0.6
"""difflib's ratio from which a line counts as the changed form of another in its section."""
LONGEST_COMPARED = 500
"""Characters of a line that are compared for likeness: the longest line that limits allow."""
MOST_COMPARED = 40_000
"""Pairs of lines in one section, the largest that limits allow on both sides; of more, likeness takes too long."""


@dataclass(frozen=True, slots=True)
class Base:
    """A line as both sides had it at the last sync.

    `missing`: a person took it out and is asked about it, so that an equal line is another memory's.
    """

    memory_id: int
    section: str
    text: str
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A memory as it is now."""

    text: str
    category: str
    active: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """A person's change of a memory: a new text, a new category, or both (None: as it was)."""

    memory_id: int
    entry: Entry
    text: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class FoundConflict:
    """A conflict. Empty `file_text`: the line was removed; empty `other_text`: the memory was deactivated."""

    memory_id: int
    kind: ConflictKind
    section: str
    base_text: str
    file_text: str
    other_text: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A memory and its line after the plan; in a conflict `text` stays that of the last sync."""

    memory_id: int
    section: str
    text: str
    order: int


@dataclass(slots=True)
class Plan:
    """What is to be done. `added` are a person's new lines, `returned` the lines of known memories that were not in it.

    `placed` are the memories that stand in the file afterwards, in its order, without the added ones.
    """

    added: list[Entry] = field(default_factory=list)
    returned: dict[int, Entry] = field(default_factory=dict)
    changed: list[Changed] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    conflicts: list[FoundConflict] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    replace: dict[Entry, str] = field(default_factory=dict)
    remove: set[Entry] = field(default_factory=set)
    add: list[tuple[int, str, str]] = field(default_factory=list)
    """Lines that move to another section because their memory's type changed: (memory, section, text)."""

    @property
    def edits(self) -> Edits:
        return Edits(self.replace, frozenset(self.remove), [(section, text) for _, section, text in self.add])

    @property
    def unsettled(self) -> set[int]:
        """Return the memories whose line differs from them: in a conflict, or changed by a person."""
        return {one.memory_id for one in self.conflicts} | {one.memory_id for one in self.changed}

    @property
    def by_people(self) -> bool:
        """Whether the file holds a change of a person that the memories do not have yet."""
        return bool(self.added or self.returned or self.changed or self.removed)


def plan(
    base: Sequence[Base],
    document: Document,
    known: Mapping[int, Known],
    sections: SectionSet,
    outside: Mapping[str, int] | None = None,
    most_sections: int = 50,
) -> Plan:
    """Compare the three sides. `outside` are active memories that are not in the file, by their text.

    A line whose memory got another type moves, unless its section is missing and the file has `most_sections`. A memory
    that `known` lacks was deleted. The same inputs give the same plan; the plan of its outcome is empty.
    """
    draft, room = Plan(), _Room([one.name for one in document.sections if one.line >= 0], most_sections)
    for required in sections.required:  # these are put back before any other section comes in
        room.holds(required)
    # Not in the order of the file, which changes: of two equal lines each must find the same partner again.
    pairs, remaining, free = paired(sorted(base, key=lambda one: (one.missing, one.memory_id)), document.entries, known)
    for one, entry in pairs:
        _compare(draft, one, entry, known.get(one.memory_id), sections, room)
    types = {number: memory.category for number, memory in known.items()}
    types |= {one.memory_id: one.category for one in draft.changed if one.category is not None}
    by_name: dict[tuple[str, str, str], Entry] = {}
    for one, entry in pairs:
        for name in _names(entry, types.get(one.memory_id, sections.type_of(entry.section))):
            by_name.setdefault(name, entry)
    for one in remaining:
        _removed(draft, one, known.get(one.memory_id))
    spare = {text.lower(): memory_id for text, memory_id in (outside or {}).items()}
    repeated: list[tuple[Entry, Entry]] = []
    for entry in free:
        names = _names(entry, sections.type_of(entry.section))
        if original := next((by_name[name] for name in names if name in by_name), None):
            repeated.append((original, entry))
            continue
        by_name |= dict.fromkeys(names, entry)
        memory_id = spare.pop(entry.text.lower(), None)
        if memory_id is None:
            draft.added.append(entry)
        else:
            _returned(draft, memory_id, entry, known.get(memory_id), sections)
    draft.remove |= {entry for original, entry in repeated if original in draft.remove or original in draft.replace}
    draft.placed.sort(key=lambda row: row.order)
    return draft


def _names(entry: Entry, category: str) -> tuple[tuple[str, str, str], ...]:
    """Return what makes two lines the same memory: the text, whatever its case, with its section or its type."""
    text = entry.text.lower()
    return ("section", entry.section.casefold(), text), ("type", category, text)


def _returned(draft: Plan, memory_id: int, entry: Entry, memory: Known | None, sections: SectionSet) -> None:
    """Decide about a person's line that says what a memory outside of the file says."""
    draft.returned[memory_id] = entry
    draft.placed.append(Placed(memory_id, entry.section, entry.text, entry.start))
    text = None if memory is None or memory.text == entry.text else entry.text
    kind = _type_after_move(entry.section, memory, sections)
    if text is not None or kind is not None:
        draft.changed.append(Changed(memory_id, entry, text, kind))


def paired(
    base: Sequence[Base], entries: Sequence[Entry], known: Container[int]
) -> tuple[list[tuple[Base, Entry]], list[Base], list[Entry]]:
    """Return each base line with its entry, the base lines without one, and the entries without a base line.

    Equal text in the same section goes first, then equal text elsewhere (moved), then text that differs in its case
    alone, then the most alike of a section. A memory that is not `known` has its own line alone, not another's.
    """
    pairs: dict[int, Entry] = {}
    free = dict(enumerate(entries))
    for folded, within in ((False, True), (False, False), (True, True), (True, False)):

        def key(one: Base | Entry, folded: bool = folded, within: bool = within) -> tuple[str, str]:
            return one.section.casefold() if within else "", one.text.lower() if folded else one.text

        places: dict[tuple[str, str], deque[int]] = {}
        for place, entry in free.items():
            places.setdefault(key(entry), deque()).append(place)
        for number, one in enumerate(base):
            own = within and not folded
            if number not in pairs and (own or one.memory_id in known) and places.get(key(one)):
                pairs[number] = free.pop(places[key(one)].popleft())
    remaining = {number: one for number, one in enumerate(base) if number not in pairs}
    for number, place in _alike({n: one for n, one in remaining.items() if one.memory_id in known}, free):
        pairs[number] = free.pop(place)
        del remaining[number]
    return [(base[number], pairs[number]) for number in sorted(pairs)], list(remaining.values()), list(free.values())


def _alike(base: Mapping[int, Base], free: Mapping[int, Entry]) -> list[tuple[int, int]]:
    """Pair the lines that are left by likeness within a section, the most alike first: (number, place)."""
    by_section: dict[str, list[tuple[int, str]]] = {}
    for place, entry in free.items():
        by_section.setdefault(entry.section.casefold(), []).append((place, entry.text[:LONGEST_COMPARED]))
    lines: dict[str, list[tuple[int, str]]] = {}
    for number, one in base.items():
        lines.setdefault(one.section.casefold(), []).append((number, one.text[:LONGEST_COMPARED]))
    scored = []
    for section, old in lines.items():
        new = by_section.get(section, [])
        if len(old) * len(new) <= MOST_COMPARED:
            scored += [(-ratio, n, place) for n, one in old for place, ratio in _ratios(one, new)]
    pairs: list[tuple[int, int]] = []
    numbers, places = set(), set()
    for _, number, place in sorted(scored):
        if number not in numbers and place not in places:
            numbers.add(number)
            places.add(place)
            pairs.append((number, place))
    return pairs


def _ratios(text: str, others: Sequence[tuple[int, str]]) -> Iterator[tuple[int, float]]:
    """Yield (place, ratio) of the texts that are alike enough."""
    matcher = SequenceMatcher(b=text, autojunk=False)
    for place, other in others:
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE:
            ratio = matcher.ratio()
            if ratio >= ALIKE:
                yield place, ratio


@dataclass(slots=True)
class _Room:
    """The sections that a file has, and how many it may have."""

    names: list[str]
    most: int

    def holds(self, name: str) -> bool:
        """Whether the file has the section, or gets it."""
        if any(same_name(name, existing) for existing in self.names):
            return True
        if len(self.names) >= self.most:
            return False
        self.names.append(name)
        return True


def _compare(draft: Plan, one: Base, entry: Entry, memory: Known | None, sections: SectionSet, room: _Room) -> None:
    """Decide about a line that stands in the file."""
    edited, moved = entry.text != one.text, not same_name(entry.section, one.section)
    if memory is None or not memory.active:
        if edited or moved:
            _conflict(draft, one, ConflictKind.REMOVED_HERE, entry, "")
        else:
            draft.remove.add(entry)
            draft.gone.append(one.memory_id)
        return
    text = memory.text
    if edited and text not in (one.text, entry.text):
        _conflict(draft, one, ConflictKind.EDITED, entry, text)
        return
    kind = _type_after_move(entry.section, memory, sections) if moved else None
    if edited and text != entry.text:
        draft.changed.append(Changed(one.memory_id, entry, entry.text, kind))
        text = entry.text
    elif kind is not None:
        draft.changed.append(Changed(one.memory_id, entry, category=kind))
    section = entry.section if moved else _section_now(one.section, memory, sections, room)
    if entry.secret:
        # What is stored has the credential masked, and the line is the only place that holds it.
        if text != entry.text:
            _conflict(draft, one, ConflictKind.EDITED, entry, text)
            return
        section = entry.section
    if not same_name(section, entry.section):
        draft.remove.add(entry)
        draft.add.append((one.memory_id, section, text))
    elif text != entry.text:
        draft.replace[entry] = text
    draft.placed.append(Placed(one.memory_id, section, text, entry.start))


def _removed(draft: Plan, one: Base, memory: Known | None) -> None:
    """Decide about a line that a person took out of the file."""
    if memory is None or not memory.active:
        draft.gone.append(one.memory_id)
    elif memory.text != one.text:
        _conflict(draft, one, ConflictKind.REMOVED_IN_FILE, None, memory.text)
    else:
        draft.removed.append(one.memory_id)
        draft.gone.append(one.memory_id)


def _conflict(draft: Plan, one: Base, kind: ConflictKind, entry: Entry | None, other: str) -> None:
    section = entry.section if entry else one.section
    text = entry.text if entry else ""
    draft.conflicts.append(FoundConflict(one.memory_id, kind, section, one.text, text, other))
    draft.placed.append(Placed(one.memory_id, one.section, one.text, entry.start if entry else -1))


def _type_after_move(section: str, memory: Known | None, sections: SectionSet) -> str | None:
    """Return the type that a memory gets in a section; None when it stays what it is."""
    if memory is None or same_name(sections.section_of(memory.category), section):
        return None
    kind = sections.type_of(section)
    return None if kind == memory.category else kind


def _section_now(section: str, memory: Known, sections: SectionSet, room: _Room) -> str:
    """Return where the line of a memory belongs: where it is, unless its type changed since and there is room."""
    belongs = sections.section_of(memory.category)
    stays = sections.type_of(section) == memory.category or same_name(belongs, section) or not room.holds(belongs)
    return section if stays else belongs
