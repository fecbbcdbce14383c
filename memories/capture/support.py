"""Find who supports the words of a statement: a person, the outputs of the own house, outside text, or nobody. Pure.

A word belongs to the piece of a session that brought it first; what the agent says is no source. Measured on sessions
written by hand: `tests/memories/capture/test_support.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from memories.capture.text import WITHOUT_BLANKS, fold

PERSON_COVERS = 0.62
"""The share of a statement's weight that one typed turn must have."""
SHOWN, PERSON_COVERS_SHOWN = 0.75, 0.5
"""The same where turn and house together show so much of it, and nothing of the rest came from outside."""
PERSON_LEAVES = 0.12
"""The share of it that may stand in outside text beside that."""
OUTSIDE_BROUGHT, OUTSIDE_COVERS = 0.22, 0.55
"""The share that came first from outside, or that one outside turn has, from which on it is outside's."""
HOUSE_COVERS, HOUSE_ALONE = 0.5, 0.35
"""The share that house, calls and persons have together, and without the persons."""
RUN = 6
"""Words in a row that one who types does not share by chance with what was read."""
NUMBER_WEIGHS = NAME_WEIGHS = 2.0
DENIAL_WEIGHS = 1.5
AGENT_SAYS = 0.34
"""The share of a statement that the agent's own turn must have to be where it was concluded."""
LONGEST = 60_000
"""Characters of a piece that are read."""
MOST_QUOTES, LONGEST_QUOTE, MOST_LINES = 3, 300, 2_000
NAMES = "names of files, branches or hosts"
"""The source of a sentence whose words are joined, as a stranger names something."""

_WORD = re.compile(rf"[{WITHOUT_BLANKS}]+|[^\W_{WITHOUT_BLANKS}]+(?:['’][a-z]+)?")
_SCRIPT = re.compile(f"[{WITHOUT_BLANKS}]")
_NAME = re.compile(r"`[^`]{2,80}`|(?:[\w~/]+[._/@:#~=-]+)+\w+|[~/][\w./-]+\w|\b[A-Z]{2,}\b|\w*\d\w*")
_NUMBER_AND_UNIT = re.compile(r"(\d+)([a-z]+)\Z")
_CAMEL_NAME, _CAMEL = re.compile(r"\b\w*[a-z][A-Z]\w*"), re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_QUESTION = re.compile(r"[?？][\W_]*\Z")
_WRAPPED = re.compile(r"(?<![.!?。！？:;\n])\n(?=[^\W\dA-Z_])")
"""A line that goes on in the next one."""
_DENIAL_SIGNS = frozenset("不勿没沒無无禁")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
DENIALS = frozenset(
    """
    no not never none nothing nobody without cannot dont doesnt didnt isnt arent wasnt wont cant shouldnt mustnt neither
    nor unless forbidden prohibited
    nicht nie niemals kein keine keinen ohne verboten pas jamais sans interdit aucun nunca sin jamás prohibido não nem
    sem non mai senza niet nooit geen zonder не нет никогда без нельзя
    """.split()  # noqa: SIM905
)
NORMS = frozenset(
    """
    must should shall may can only always every need needs have required allowed permitted safe
    muss müssen soll sollen darf dürfen immer nur doit doivent peut toujours seulement debe deben puede siempre solo
    deve sempre moet mag altijd должен можно всегда только
    """.split()  # noqa: SIM905
)
DENIAL = "not"
"""Stands for every denial: never, nobody, without."""
COMMON = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by did do does doing during each few
    for from further get gets got had has having he her here hers him his how i if in into is it its itself just me more
    most my now of off on once or other our out over own please she so some such than that the their them then there
    these they this those through to too under until up us very was we were what when where which while who whom whose
    why will with would you your out via per since use used uses using keep keeps kept hold holds longer others ones
    der die das den dem des ein eine einen einem einer und oder aber ist sind war waren wird werden auf aus bei mit nach
    von zu zum zur im am für als auch es sie er wir ihr dass wenn weil dann noch schon
    le la les un une des et ou mais est sont était dans sur avec pour par que qui ce cette il elle nous vous on au aux
    du el los las una unos y o pero es son en con para por del al lo se su sus
    """.split()  # noqa: SIM905
)
SPEAKERS = frozenset("operator operators user users team owner maintainer maintainers person people human".split())  # noqa: SIM905
"""Who types, as a statement calls them."""


class Voice(StrEnum):
    """Who brought a piece: an agent's words and calls are no source."""

    PERSON = "person"
    HOUSE = "house"
    OUTSIDE = "outside"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Quote:
    """The line of a turn that has most of a statement's words; `source` names where an outside turn came from."""

    turn: int
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """Who supports a statement, and the quotes that do, the best first; of nobody's, where the agent said it."""

    by: Voice
    quotes: tuple[Quote, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether a person or the outputs of the house support it."""
        return self.by in (Voice.PERSON, Voice.HOUSE)

    def as_json(self) -> dict[str, Any]:
        """Return it as a memory keeps it: {by, quotes: [{turn, text, source}]}."""
        return {"by": self.by.value, "quotes": [asdict(quote) for quote in self.quotes]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Support | None:
        """Read it; None where nothing is kept."""
        return cls(Voice(stored["by"]), tuple(Quote(**one) for one in stored["quotes"])) if stored else None


@dataclass(slots=True)
class _Piece:
    number: int
    words: frozenset[str]
    text: str
    source: str = ""


@dataclass(slots=True)
class Evidence:
    """What a session read, wrote and was told, in order. Each piece is indexed once."""

    persons: list[_Piece] = field(default_factory=list)
    houses: list[_Piece] = field(default_factory=list)
    outsides: list[_Piece] = field(default_factory=list)
    agents: list[_Piece] = field(default_factory=list)
    _first: dict[str, Voice] = field(default_factory=dict)
    _house: set[str] = field(default_factory=set)
    _reported: set[str] = field(default_factory=set)
    _called: set[str] = field(default_factory=set)
    _planted: set[str] = field(default_factory=set)
    _runs: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def has_outside(self) -> bool:
        return bool(self.outsides)

    def person(self, number: int, text: str) -> None:
        """Add what a person typed. What repeats six words of outside text in a row is a quotation: outside's."""
        kept = []
        for sentence in _SENTENCE.split(_WRAPPED.sub(" ", text[:LONGEST])):
            if _QUESTION.search(sentence) or self._quotes(sentence):
                continue
            kept.append(sentence)
        words = frozenset(_words("\n".join(kept)))
        self.persons.append(_Piece(number, words, "\n".join(kept)))
        self._bring(words, Voice.PERSON)

    def house(self, number: int, text: str) -> None:
        """Add an output of the own machines. Words of its lines without a sentence are the house's, whoever said them.

        A line with a sentence whose words are joined is from outside: a stranger may have named a file so.
        """
        lines = text[:LONGEST].split("\n")
        if joined := [line for line in lines if _JOINED.search(line)]:
            self.outside(number, "\n".join(joined), NAMES)
            lines = [line for line in lines if not _JOINED.search(line)]
            text = "\n".join(lines)
        words = frozenset(word for word in _shown(text[:LONGEST]) if word not in self._planted)
        self.houses.append(_Piece(number, words, text[:LONGEST]))
        self._house |= words
        self._reported |= words.intersection(_shown("\n".join(line for line in lines if not is_prose(line))))
        self._bring(words, Voice.HOUSE)

    def depends(self, number: int, text: str, source: str, *, names: bool = False) -> None:
        """Add an output of what runs code, relays text or is unknown: its sentences are from outside.

        Its other lines are the house's, and support nothing once a sentence from outside was read, unless they are
        `names` of files.
        """
        lines = text[:LONGEST].split("\n")
        had_outside = self.has_outside
        if sentences := [line for line in lines if is_prose(line)]:
            self.outside(number, "\n".join(sentences), source)
        if names or not had_outside:
            self.house(number, "\n".join(line for line in lines if not is_prose(line)))

    def agent(self, number: int, text: str) -> None:
        """Add what the agent said, which supports nothing."""
        self.agents.append(_Piece(number, frozenset(_words(text[:LONGEST])), text[:LONGEST]))

    def outside(self, number: int, text: str, source: str = "") -> None:
        text = text[:LONGEST]
        words = frozenset(_shown(text))
        self.outsides.append(_Piece(number, words, text, source))
        self._runs.update(_runs(text))
        self._bring(words, Voice.OUTSIDE)

    def call(self, names: str, written: str = "") -> None:
        """Add a call of the agent's: the names in it, and what it writes somewhere.

        An agent is honest until it has read outside text: after that plain words in its calls support nothing, and
        what it writes is nobody's, also when it is read back.
        """
        self._called.update(_shown(" ".join(_NAME.findall(names)) if self.has_outside else names))
        if self.has_outside and written:
            self._planted.update(word for word in _words(written) if word not in self._house)

    def support(self, text: str) -> Support:
        """Return who supports a statement."""
        weights = _weights(text)
        total = sum(weights.values())
        if not total:
            return Support(Voice.NOBODY)
        if piece := self._person(text, weights, total):
            return Support(Voice.PERSON, (_quote(piece, weights),))
        if pieces := self._outside(weights, total):
            return Support(Voice.OUTSIDE, tuple(_quote(piece, weights) for piece in pieces))
        if pieces := self._house_of(weights, total):
            return Support(Voice.HOUSE, tuple(_quote(piece, weights) for piece in pieces))
        said = [piece for piece in _best(self.agents, weights) if _share(piece, weights) >= AGENT_SAYS * total]
        return Support(Voice.NOBODY, tuple(_quote(piece, weights) for piece in said[:1]))

    def _person(self, text: str, weights: dict[str, float], total: float) -> _Piece | None:
        outside = {word for word in weights if self._is_outside(word)}
        for piece in _best(self.persons, weights):
            left = sum(weight for word, weight in weights.items() if word not in piece.words and word in outside)
            shown = sum(weight for word, weight in weights.items() if word in piece.words or word in self._house)
            covers = PERSON_COVERS if left or shown < SHOWN * total else PERSON_COVERS_SHOWN
            if _share(piece, weights) < covers * total or left > PERSON_LEAVES * total:
                continue
            if _numbers(weights) <= piece.words and _denies(text) == _denies(_covering(piece.text, weights)):
                return piece
        return None

    def _outside(self, weights: dict[str, float], total: float) -> list[_Piece]:
        brought = sum(weight for word, weight in weights.items() if self._is_outside(word))
        unreported = {word: weight for word, weight in weights.items() if word not in self._reported}
        pieces = _best(self.outsides, unreported)
        if brought < OUTSIDE_BROUGHT * total and (not pieces or _share(pieces[0], unreported) < OUTSIDE_COVERS * total):
            return []
        return pieces[:MOST_QUOTES]

    def _house_of(self, weights: dict[str, float], total: float) -> list[_Piece]:
        persons = frozenset().union(*(piece.words for piece in self.persons)) if self.persons else frozenset()
        own = {word for word in weights if word in self._house or word in self._called}
        alone = sum(weights[word] for word in own)
        together = sum(weight for word, weight in weights.items() if word in own or word in persons)
        if together < HOUSE_COVERS * total or alone < HOUSE_ALONE * total:
            return []
        if not all(word in own or word in persons for word in _numbers(weights)):
            return []
        return _best(self.houses, weights)[:MOST_QUOTES]

    def _is_outside(self, word: str) -> bool:
        return self._first.get(word) == Voice.OUTSIDE and word not in self._reported

    def _bring(self, words: Iterable[str], voice: Voice) -> None:
        for word in words:
            self._first.setdefault(word, voice)

    def _quotes(self, text: str) -> bool:
        return any(run in self._runs for run in _runs(text))


_PLAIN_RUN = re.compile(r"(?:[A-Za-zÀ-ÿ]+[,;:]? ){5}[A-Za-zÀ-ÿ]+")
_FOREIGN_RUN = re.compile(r"[^\x00-\x7f]{8}")
_JOINED = re.compile(r"(?:[A-Za-z]{2,}[-_.+]){4,}[A-Za-z]{2,}(?![\w\"]*\s?[=:])")
"""A sentence with its words joined, as a stranger names a file, a branch or a host. A setting has its value behind."""


def _share(piece: _Piece, weights: dict[str, float]) -> float:
    return sum(weight for word, weight in weights.items() if word in piece.words)


def _best(pieces: Iterable[_Piece], weights: dict[str, float]) -> list[_Piece]:
    """Return the pieces that have words of a statement, those with most of them first, then in their order."""
    having = [(_share(piece, weights), piece) for piece in pieces]
    return [piece for share, piece in sorted(having, key=lambda one: (-one[0], one[1].number)) if share]


def _quote(piece: _Piece, weights: dict[str, float]) -> Quote:
    """Return the line of a piece that has most of a statement's words, cut."""
    lines = [line for one in piece.text.split("\n") for line in _SENTENCE.split(one) if line.strip()]
    shares = [sum(weights.get(word, 0.0) for word in set(_words(line))) for line in lines[:MOST_LINES]]
    best = lines[shares.index(max(shares))].strip() if lines else ""
    return Quote(piece.number, best[:LONGEST_QUOTE], piece.source)


def is_prose(line: str) -> bool:
    """Whether a line holds a sentence: six plain words in a row, or eight letters of another script."""
    return bool(_PLAIN_RUN.search(line) or _FOREIGN_RUN.search(line) or _JOINED.search(line))


def _shown(text: str) -> list[str]:
    """Return the words of a text that was read; of a name in one word, such as NetworkMode, its parts, too."""
    parts = " ".join(_CAMEL.sub(" ", name) for name in _CAMEL_NAME.findall(text))
    return _words(f"{text}\n{parts}")


def _words(text: str) -> list[str]:
    found: list[str] = []
    for whole in _WORD.findall(fold(text).lower()):
        word = whole.replace("'", "").replace("’", "")
        if _SCRIPT.match(word) and (not _DENIAL_SIGNS.isdisjoint(word) or word.endswith(("ない", "ません"))):
            found.append(DENIAL)
        if _SCRIPT.match(word) and len(word) > 2:
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        elif word in DENIALS:
            found.append(DENIAL)
        elif word not in COMMON and word not in NORMS:
            found.append(_stem(word))
            if unit := _NUMBER_AND_UNIT.match(word):  # 744h, 6G: the number, too
                found.append(_stem(unit[1]))
    return found


@lru_cache(maxsize=16_384)  # a session says the same words again and again
def _stem(word: str) -> str:
    if word.isdecimal():  # 05:17 is 17 5 in a crontab
        return word.lstrip("0") or "0"
    if not word.isalpha() or not word.isascii() or word in DENIALS:
        return word
    for ending in (
        "ications",
        "ication",
        "ations",
        "ation",
        "ments",
        "ment",
        "ings",
        "ing",
        "ied",
        "ies",
        "ers",
        "er",
        "ed",
        "es",
        "ly",
        "s",
        "e",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 4 and (word[-1] == word[-2] or word[-1] in "ey") else word


def _runs(text: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(fold(text).lower())
    return [tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)]


def _weights(text: str) -> dict[str, float]:
    names = {word for name in _NAME.findall(text) for word in _words(name)}
    capital = {_stem(word.lower()) for word in re.findall(r"(?<=[a-z,;:)] )[A-Z][a-z]{2,}", text)}
    weights: dict[str, float] = {}
    for word in _words(text):
        if word in SPEAKERS or word in {_stem(one) for one in SPEAKERS}:
            continue
        if word[0].isdigit():
            weights[word] = NUMBER_WEIGHS
        elif word in names or word in capital:
            weights[word] = NAME_WEIGHS
        elif word == DENIAL:
            weights[word] = DENIAL_WEIGHS
        else:
            weights[word] = 1.0
    return weights


def _numbers(weights: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in weights if word[0].isdigit())


def _denies(text: str) -> bool:
    return DENIAL in _words(text)


def _covering(text: str, weights: dict[str, float]) -> str:
    """Return the sentences of a turn that have words of the statement."""
    return "\n".join(
        one for one in _SENTENCE.split(text) if any(word in weights and word != DENIAL for word in _words(one))
    )
