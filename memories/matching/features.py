"""Compute the features of two texts for `linear_model`. Symmetric in the two texts. Judges nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .axes import alikes_of, is_circumstance, kinds_of
from .content_words import VERB_STEMS, Piece, Pieces, pieces_of
from .evidence import Case
from .function_words import OBLIGATION, words
from .guards import apart, one_number, uneven
from .synonyms import stem
from .tokens import OF_A_KIND

CLOSE_ENOUGH = 0.7
"""Cosine below which two texts are never made one."""

MOST_WORDS = 24
"""Longer texts are no single facts; the rules decide them."""

_LEAST_STEM = 5
_FALSE_FRIENDS = frozenset(("internet", "internal", "intern"))

GENERIC = words(
    """history file record entry data lifetime process item thing kind content amount total value period usage size
    way mode format place job information detail line"""
)
"""Nouns that may be left out: "build history" for builds, "log files" for logs."""
_GENERIC = frozenset(map(stem, GENERIC))
_RANKS = words("first last then master slave primary secondary replica leader follower active standby")
_EXCLUSIVE = frozenset(("only", "solely", "exclusively", "just", "alone"))
_KEPT = words("keep keeps kept retain retained retention stay stays hold held store stored")
_OVER = words("delete deleted deletes remove removed purge purged expire expires discard discarded drop dropped thrown")

NAMES = (
    "bias", "cosine", "close", "apart", "alike", "close and alike", "least own", "most own", "own heads", "own head",
    "own tails", "shared head", "value swapped", "value led alike", "one kind", "kind in head", "opposed",
    "leaning alike", "stance", "amounts differ", "amount more", "amounts same", "names differ", "name more", "order",
    "order unsure", "denial", "stance unsure", "statements", "length", "exclusive", "condition more", "modal", "no own",
    "one own", "light own", "value of one kind", "name swapped", "scopes", "word swapped", "word more", "nothing apart",
    "own words alone apart",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Features:
    """The numbers for two texts, in the order of `NAMES`, and the facts that the guards use.

    `left` and `right` are the words that only one text has, `opposed` counts axes with opposite leanings. `pure_swap`:
    they differ by one run of words; `narrower`: only one has own words; `evident`: one value replaces another;
    `value_of_a_kind`: of one kind; `ordered_alike`: both say who is first; `heads_apart`: subjects differ,
    `other_subject`: the rest is in one order; `scoped`: each has own words after a preposition, `elsewhere`: and
    others; `of_a_kind`: two things of one series; `recounted`: one repeats a word; `describing`: own words only
    specify; `exclusive`: one says "only"; `apart`: the guards' reason, None when they did not run; `two_cases`: other
    conditions and more; `says_own`: each says something else of its subject.
    """

    numbers: tuple[float, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    opposed: int
    pure_swap: bool
    narrower: bool
    heads_apart: bool
    other_subject: bool
    evident: bool
    value_of_a_kind: bool
    leaning_alike: int
    ordered_alike: bool
    names_apart: bool
    scoped: bool
    elsewhere: bool
    describing: bool
    recounted: bool
    of_a_kind: bool
    more_than_names: bool
    apart: str | None
    exclusive: bool
    two_cases: bool
    says_own: bool


def features_of(case: Case, known: str, new: str) -> Features | None:
    """Compute the features of two texts; None when one has no content, or too much for a single fact."""
    one, other = pieces_of(known), pieces_of(new)
    if not (0 < len(one.content) <= MOST_WORDS and 0 < len(other.content) <= MOST_WORDS):
        return None
    left, right = _own_of_each(one, other)
    matched = len(one.content) - len(left) + len(other.content) - len(right)
    alike = matched / (len(one.content) + len(other.content))
    cosine = case.cosine or 0.0
    heads = bool(_heads(left)) + bool(_heads(right))
    tails = bool(left and not _heads(left)) + bool(right and not _heads(right))
    verbs = one.has_verb and other.has_verb
    swapped = bool(left and right and not heads and max(len(left), len(right)) <= 3)
    led_alike = swapped and left[0].leads == right[0].leads
    axes, leaning_alike, leaning_words = _leanings(one, other)
    opposed = len(axes)
    if opposed and _kept_as_long(case, one, other):
        opposed, leaning_alike = opposed - 1, leaning_alike + 1
    kinds, head_kinds = _kinds(left) & _kinds(right), _kinds(_heads(left)) & _kinds(_heads(right))
    known_form, new_form, amounts = case.known, case.new, case.amounts
    names_known = known_form.names - new_form.names - other.written
    names_new = new_form.names - known_form.names - one.written
    least, most = sorted((len(left), len(right)))
    kept = [[piece.name for piece in side.content if piece not in own] for side, own in ((one, left), (other, right))]
    in_order = kept[0] == kept[1]
    pure_swap = bool(left and right) and in_order and _run(one, left) == _run(other, right) != -1
    scopes = [[piece for piece in own if piece.leads and piece.text not in leaning_words] for own in (left, right)]
    scoped = all(scopes)
    exclusive = bool(one.written & _EXCLUSIVE) != bool(other.written & _EXCLUSIVE)
    narrower = in_order and bool(left) != bool(right) and not all(_adds_nothing(piece) for piece in (*left, *right))
    asked = cosine >= CLOSE_ENOUGH and not (case.clashes or opposed or pure_swap or narrower or uneven(case))
    guarded = apart(case, known, new) if asked else None
    numbers = (
        1.0,
        cosine,
        max(0.0, cosine - 0.8) * 5,
        max(0.0, 0.7 - cosine) * 5,
        alike,
        cosine * alike,
        min(least, 3) / 3,
        min(most, 4) / 4,
        float(heads == 2),
        float(heads == 1),
        tails / 2,
        float(verbs and bool(_shared_head(one, other))),
        float(swapped),
        float(led_alike),
        float(bool(kinds)),
        float(bool(head_kinds)),
        min(opposed, 2) / 2,
        min(leaning_alike, 2) / 2,
        float(bool(case.opposites.clashes)),
        float(bool(amounts.different)),
        float(bool(amounts.only_known or amounts.only_new)),
        float(bool(amounts.same) or any(one_number(*pair) for pair in amounts.unsure)),
        float(bool(names_known and names_new)),
        float(bool(names_known) != bool(names_new)),
        float(bool(case.order.clashes)),
        float(bool(case.order.doubts)),
        float((len(known_form.turns) - len(new_form.turns)) % 2),
        float(bool(case.opposites.doubts)),
        float(max(known_form.statements, new_form.statements) > 1),
        abs(len(one.content) - len(other.content)) / (len(one.content) + len(other.content)),
        float(exclusive),
        float(bool(known_form.ordered) != bool(new_form.ordered)),
        float(_modals(one) != _modals(other)),
        float(most == 0),
        float(least == 0 and most > 0),
        float(bool(left or right) and all(_adds_nothing(piece) for piece in (*left, *right))),
        float(pure_swap and bool(kinds) and not heads),
        float(pure_swap and bool(names_known and names_new) and not heads),
        float(scoped),
        float(pure_swap),
        float(narrower),
        float(guarded == "" and not least),
        float(guarded == "" and least > 0),
    )
    return Features(
        numbers,
        tuple(piece.text for piece in left),
        tuple(piece.text for piece in right),
        opposed,
        pure_swap=pure_swap,
        narrower=narrower,
        heads_apart=heads == 2,
        other_subject=heads == 2 and in_order,
        evident=bool(kinds) or pure_swap,
        value_of_a_kind=pure_swap and bool(kinds) and not heads,
        leaning_alike=leaning_alike,
        ordered_alike=bool(one.written & other.written & _RANKS),
        names_apart=bool(names_known and names_new),
        scoped=scoped,
        elsewhere=scoped and all(len(own) > len(scope) for own, scope in zip((left, right), scopes, strict=True)),
        describing=pure_swap and not kinds and not opposed and _describes(one, left) and _describes(other, right),
        recounted=bool(right and _more_often(one, other)) or bool(left and _more_often(other, one)),
        of_a_kind=_of_a_kind(names_known, names_new) and any(piece.leads for piece in (*left, *right)),
        more_than_names=any(piece.text not in names_known | names_new for piece in (*left, *right)),
        apart=guarded,
        exclusive=exclusive,
        two_cases=_two_cases(case, one, other, axes),
        says_own=swapped and not leaning_alike and not amounts.same,
    )


def _two_cases(case: Case, one: Pieces, other: Pieces, opposed: Collection[int]) -> bool:
    """Whether they differ in when, where or which, and in more; or in which alone ("the day shift")."""
    if not any(map(is_circumstance, opposed)):
        return False
    subjects = [
        {axis for word, axis, _ in side.leanings if word in side.subject and axis in opposed and is_circumstance(axis)}
        for side in (one, other)
    ]
    return len(opposed) > 1 or case.clashes or bool(subjects[0] & subjects[1])


def _kept_as_long(case: Case, one: Pieces, other: Pieces) -> bool:
    """ "Kept for 7 days" beside "deleted after 7 days"."""
    if not any(reading.dimension == "time" for pair in case.amounts.same for reading in pair[0].readings):
        return False
    kept, over = (one.written & _KEPT, other.written & _KEPT), (one.written & _OVER, other.written & _OVER)
    return bool((kept[0] and over[1] and not kept[1]) or (kept[1] and over[0] and not kept[0]))


def _run(pieces: Pieces, own: Sequence[Piece]) -> int:
    """Return how many words stand before the only run of some; -1 when they are more than one run."""
    places = [at for at, piece in enumerate(pieces.content) if piece in own]
    return places[0] if places[-1] - places[0] == len(places) - 1 else -1


def _describes(pieces: Pieces, own: Sequence[Piece]) -> bool:
    """Whether some words only specify: what follows them in their phrase is shared ("the mail crashes")."""
    last = max(at for at, piece in enumerate(pieces.content) if piece in own)
    following = pieces.content[last + 1 : last + 2]
    return bool(following) and following[0].leads == pieces.content[last].leads and following[0].at == own[-1].at + 1


def _more_often(one: Pieces, other: Pieces) -> bool:
    """Whether `one` has a shared word more often: "short self-test, long self-test"."""
    return any(count > other.counts.get(name, count) for name, count in one.counts.items() if count > 1)


def _of_a_kind(one: Collection[str], other: Collection[str]) -> bool:
    """lb-1 and lb-2 are two of a kind, each with its own facts."""
    return bool({OF_A_KIND.sub("0", name) for name in one} & {OF_A_KIND.sub("0", name) for name in other})


def _adds_nothing(piece: Piece) -> bool:
    return piece.light or stem(piece.text) in _GENERIC or (not piece.head and stem(piece.text) in VERB_STEMS)


def _kinds(own: Sequence[Piece]) -> set[int]:
    return {kind for piece in own for kind in kinds_of(piece.text)}


def _modals(pieces: Pieces) -> bool:
    return bool(pieces.written & (OBLIGATION | {"need", "needs", "required"}))


def _heads(own: Sequence[Piece]) -> list[Piece]:
    return [piece for piece in own if piece.head]


def _shared_head(one: Pieces, other: Pieces) -> list[Piece]:
    heads = {piece.name for piece in other.content if piece.head}
    return [piece for piece in one.content if piece.head and piece.name in heads]


def _own_of_each(one: Pieces, other: Pieces) -> tuple[list[Piece], list[Piece]]:
    """Return the content words of one text alone; two akin words, one of each text, count as shared."""
    left = [piece for piece in one.content if piece.name not in other.counts]
    right = [piece for piece in other.content if piece.name not in one.counts]
    for piece in tuple(left):
        akin = _first_akin(piece.name, right)
        if akin is not None:
            left.remove(piece)
            right.remove(akin)
    return left, right


def _first_akin(name: str, among: Sequence[Piece]) -> Piece | None:
    """Return the first akin word: archiv, archive; replica, replication; maxmemory, memory; cause, trigger."""
    groups, start, is_max = alikes_of(name), name[:_LEAST_STEM], name.startswith("max")
    for piece in among:
        other = piece.name
        if groups and not groups.isdisjoint(alikes_of(other)):
            return piece
        # Compare the beginnings first, so that the slower comparison runs for few pairs.
        if (other[:_LEAST_STEM] == start or is_max or other.startswith("max")) and _spelled_alike(name, other):
            return piece
    return None


def _spelled_alike(one: str, other: str) -> bool:
    if min(len(one), len(other)) < _LEAST_STEM or one in _FALSE_FRIENDS or other in _FALSE_FRIENDS:
        return False
    if OF_A_KIND.search(one) or OF_A_KIND.search(other):
        return False
    if one.removeprefix("max") == other or other.removeprefix("max") == one:
        return True
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= _LEAST_STEM and common >= 0.7 * max(len(one), len(other))


def _leanings(one: Pieces, other: Pieces) -> tuple[set[int], int, frozenset[str]]:
    """Return (axes with opposite leanings, number of axes with one leaning in other words, the opposed words)."""
    if not (one.leanings and other.leanings):
        return set(), 0, frozenset()
    left, right = _sides(one, other), _sides(other, one)
    whole_left, whole_right = _sides(one, None), _sides(other, None)
    axes = left.keys() & right.keys()
    opposed = {axis for axis in axes if left[axis] * right[axis] < 0 and whole_left[axis] * whole_right[axis] <= 0}
    found = frozenset(word for word, axis, _ in (*one.leanings, *other.leanings) if axis in opposed)
    return opposed, sum(left[axis] * right[axis] > 0 for axis in axes), found


def _sides(one: Pieces, other: Pieces | None) -> dict[int, int]:
    """Sum the leanings of a text by axis; beside another text, only those that the other has not."""
    known = frozenset(other.leanings) if other else frozenset()
    found: dict[int, int] = {}
    for lean in one.leanings:
        if lean not in known:
            found[lean[1]] = found.get(lean[1], 0) + lean[2]
    return found
