"""Find single-valued slots in a clause: "The database is SQLite" and "… MariaDB" cannot both hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from .function_words import ARTICLES, BE, FUNCTION_WORDS, LEADS, NEGATIONS, PREPOSITIONS, REASONS, words
from .phrases import phrased
from .synonyms import EMPTY, meaning, stem
from .tokens import A_COMMA, A_NAME, A_NUMBER, A_STOP, A_WORD, OF_A_KIND, Token
from .vocabulary import LABEL_NOUNS, entries

_AT = words("in on at to into onto under inside within over")
_BY = words("by through via with from using over")

RELATIONS = entries("relations")
"""Verbs by the name of the question that they answer; each subject has one answer."""

SINGLE = words(
    """compress encrypt sign format build deploy synchronise synchronize sync authenticate edit provision schedule
    install trigger run connect log render transcode configure set default name tag cache index share
    expose monitor update renew rotate collect read load switch pin own bill charge"""
)
"""Further verbs that take one value after their preposition."""

SLOT_NOUNS = words(
    """mode driver level policy backend filesystem engine format algorithm protocol default type codec compression
    scheduler strategy branch timezone locale charset encoding shell provider resolver upstream registrar issuer owner
    leader primary master maintainer location source region theme editor frontend database broker executor runtime
    hypervisor supplier vendor carrier uplink gateway language dialect controller coordinator firewall router init"""
)
"""Nouns of which a thing has one: "the log level is debug"."""

_MORE = words("also too additionally both either sometimes some one another mostly partly and or plus besides")
"""Beside one of these, two values may both hold."""


def _by_stem() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for entry in RELATIONS:
        name, verbs = entry.split(" = ")
        for verb in verbs.split():
            found.setdefault(meaning(verb).name, name)
            found.setdefault(stem(verb), name)
    for verb in SINGLE:
        found.setdefault(meaning(verb).name, meaning(verb).name)
    return MappingProxyType(found)


_RELATION = _by_stem()
_SLOTS = frozenset(meaning(noun).name for noun in SLOT_NOUNS)
_LABELS = frozenset(map(stem, LABEL_NOUNS)) | {"version"}


@dataclass(frozen=True, slots=True)
class Frame:
    """A clause as subject, relation, value and rest.

    `head`: the subject's last word; `proper`: a name; `labelled`: a label.
    """

    subject: frozenset[str]
    head: str
    relation: str
    value: tuple[str, ...]
    rest: frozenset[str]
    proper: bool
    labelled: bool


@dataclass(frozen=True, slots=True)
class Slot:
    subject: str
    known: str
    new: str


def other_value(known: str, new: str) -> Slot | None:
    """Return the slot in which two texts put different values; None without one, or when both values can hold."""
    one, other = frame_of(known), frame_of(new)
    if one is None or other is None:
        return None
    same_question = one.relation == other.relation and one.subject == other.subject and one.rest == other.rest
    if not same_question or one.labelled or other.labelled:
        return None
    left, right = _without_shared_head(one.value, other.value)
    if not left or not right or set(left) & set(right) or {_shape(w) for w in left} & {_shape(w) for w in right}:
        return None
    shared_head = len(left) < len(one.value)
    if one.relation == "is" and not (one.head in _SLOTS or (one.proper and other.proper)):
        return None
    if one.relation == "use" and not shared_head:
        return None
    return Slot(" ".join(sorted(one.subject)), " ".join(one.value), " ".join(other.value))


def _without_shared_head(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove the noun that both values end with: "skip mode", "redo mode"."""
    if len(one) > 1 and len(other) > 1 and one[-1] == other[-1]:
        return one[:-1], other[:-1]
    return one, other


def _shape(word: str) -> str:
    """lb-1 and lb-2, ceph-a and ceph-b are two of a kind, each with its own facts."""
    shape = OF_A_KIND.sub("0", word)
    return f"={word}" if shape == word else shape


@lru_cache(maxsize=4_096)
def frame_of(text: str) -> Frame | None:
    """Return the frame of a text's only statement; None when it has more, is denied, or has no single-valued slot."""
    if len(text) > 300:
        return None
    found = [token for token in phrased(text) if token.text not in ARTICLES]
    while found and found[-1].sort in (A_STOP, A_COMMA):
        found.pop()
    texts = [token.text for token in found]
    if any(token.sort in (A_STOP, A_COMMA) for token in found):
        return None
    if any(word in NEGATIONS or word in REASONS or word in _MORE for word in texts):
        return None
    articles = {word.lower() for word in text.split()} & {"a", "an", "the"}
    for at, token in enumerate(found):
        if token.sort is A_WORD and (relation := _relation_at(found, at)):
            return _framed(text, found, at, relation, bool(articles))
    return None


def _relation_at(found: Sequence[Token], at: int) -> str:
    """Return the relation that the word at `at` opens, or ''."""
    word = found[at].text
    following = found[at + 1].text if at + 1 < len(found) else ""
    if word in BE:
        name = _RELATION.get(meaning(following).name, "") if following else ""
        after = found[at + 2].text if at + 2 < len(found) else ""
        if at == 0 or not following or (name and after in PREPOSITIONS):
            return ""
        return "" if following in FUNCTION_WORDS or following.endswith(("ed", "ing")) else "is"
    if word in ("use", "uses"):
        return "use"
    name = _RELATION.get(meaning(word).name, "")
    return name if name and at and (following in _AT or following in _BY or following == "as") else ""


def _framed(text: str, found: Sequence[Token], at: int, relation: str, articles: bool) -> Frame | None:
    subject = [meaning(token.text).name for token in found[:at] if _says(token)]
    start = at + 1 if relation in ("is", "use") else at + 2
    if relation not in ("is", "use", "at", "from", "handle", "go"):
        relation += " as" if found[at + 1].text == "as" else " at" if found[at + 1].text in _AT else " by"
    end = next(
        (n for n in range(start, len(found)) if found[n].text in LEADS or found[n].text in PREPOSITIONS), len(found)
    )
    value = [token for token in found[start:end] if _says(token)]
    rest = frozenset(_key(token) for token in found[end:] if _says(token))
    if not value or (not subject and relation != "use") or any(token.sort is A_NUMBER for token in value):
        return None
    named = any(token.sort is A_NAME for token in value) or _is_proper(text, value)
    before = stem(found[start - 1].text)
    return Frame(
        subject=frozenset(subject),
        head=subject[-1] if subject else "",
        relation=relation,
        value=tuple(_key(token) for token in value),
        rest=rest,
        proper=named or (articles and relation == "is" and bool(re.search(r"\b(?:is|are) an? ", text))),
        labelled=before in _LABELS or _labels(value),
    )


def _labels(value: Sequence[Token]) -> bool:
    """Whether a word of the value only specifies it: "node a7", "disk sdc" name things, "local disk" does not."""
    return any(stem(one.text) in _LABELS and other.sort is not A_WORD for one, other in pairwise(value))


def _says(token: Token) -> bool:
    return token.sort is not A_WORD or (token.text not in FUNCTION_WORDS and meaning(token.text).weight != EMPTY)


def _key(token: Token) -> str:
    return token.text if token.sort is not A_WORD else meaning(token.text).name


def _is_proper(text: str, value: Sequence[Token]) -> bool:
    """Whether a word of the value is written like a name, other than at the start of a sentence."""
    written = {part.lower() for part in re.findall(r"\w+", text)[1:] if part.lower() != part}
    return any(token.text in written for token in value)
