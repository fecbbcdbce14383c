"""Decide the relation of two texts: the first rule that applies wins.

In doubt distinct, since a merged fact is lost.
"""

from __future__ import annotations

from .denials import likeness_but_for_a_denial
from .evidence import NEAR_IN_WORDS, Case, evidence_of, listed, similarity
from .features import features_of
from .frames import other_value
from .function_words import NEGATIONS
from .linear_model import by_model, likelihood
from .normalise import normal_form
from .opposites import opposites
from .order import order, rearranged
from .overlap import overlap, things
from .paraphrase import CLOSE, why_not_one_fact
from .quantities import compare
from .relations import Kind, Relation

FAR = 0.4
"""Cosine below which two texts are hardly ever about one thing."""

DOUBTFUL = 0.5
"""Least likelihood of one fact when only closeness in meaning merged two texts."""

_COVERAGE = 0.5
"""Least share of the content that a clash must touch: "caddy is not used" denies little of a long fact."""

_LEAST_SHARED = 3
"""Least shared words and amounts before one text may add a statement and still be the same fact."""

_MOST_LIGHT = 2
"""Light words that one restatement may have more than the other."""


class LexicalMatcher:
    """Judges by words and values, and by cosine where it is known. Needs no model and no network."""

    def relation(self, known: str, new: str, *, about: str | None = None, cosine: float | None = None) -> Relation:
        subject = normal_form(about).words if about else frozenset()
        one, other = normal_form(known), normal_form(new)
        case = Case(one, other, overlap(one, other, subject), cosine=cosine)
        kind, why = _verdict(case)
        told = kind
        if kind is Kind.DISTINCT and case.words.shared and not case.clashes:
            kind, why = _paraphrase(case, known, new, why)
        if told is Kind.DISTINCT and kind is not Kind.CONTRADICTS and cosine is not None and cosine >= FAR:
            kind, why = _linear_model(case, known, new, kind, why)
        case.denied = likeness_but_for_a_denial(known, new)
        if case.denied == 1:
            kind, why = Kind.CONTRADICTS, "But for a denial they are one text."
        elif case.denied is not None and kind is Kind.REINFORCES:
            kind, why = Kind.DISTINCT, "One of them denies what the other does not."
        score = similarity(case)
        return Relation(kind, score, evidence_of(case, score, why))


def _paraphrase(case: Case, known: str, new: str, why: str) -> tuple[Kind, str]:
    """Decide two texts that words left distinct: a slot with another value, or a paraphrase."""
    slot = other_value(known, new)
    close = similarity(case) >= NEAR_IN_WORDS if case.cosine is None else case.cosine >= CLOSE
    if not (slot or close):
        return Kind.DISTINCT, why
    _ask(case)
    if case.clashes:
        return Kind.DISTINCT, why
    case.slot = slot
    if case.slot:
        slot = case.slot
        return Kind.CONTRADICTS, f"Of the same thing one says “{slot.known}”, the other “{slot.new}”."
    if case.cosine is None or case.cosine < CLOSE:
        return Kind.DISTINCT, why
    case.apart = why_not_one_fact(case, known, new, case.cosine)
    return (Kind.DISTINCT, why) if case.apart else (Kind.REINFORCES, "They say the same in quite other words.")


def _linear_model(case: Case, known: str, new: str, kind: Kind, why: str) -> tuple[Kind, str]:
    """Decide by the linear model two texts that are still distinct, or that only closeness merged."""
    _ask(case)
    weights = features_of(case, known, new)
    if weights is None:
        return kind, why
    if kind is Kind.REINFORCES:
        if weights.opposed or weights.pure_swap or weights.recounted or likelihood(weights.numbers)[0] < DOUBTFUL:
            case.apart = "All signals together say that they are not the same."
            return Kind.DISTINCT, why
        return kind, why
    look = by_model(case, known, new, weights)
    case.likely = look.likely
    if look.kind is Kind.DISTINCT:
        case.apart = look.apart or case.apart
        return kind, why
    if look.kind is Kind.REINFORCES:
        return look.kind, "All signals together say that they are one fact in other words."
    return look.kind, f"They cannot both hold: {_own_words(weights.left)} against {_own_words(weights.right)}."


def _own_words(found: tuple[str, ...]) -> str:
    return listed(found) if found else "nothing of the kind"


def _ask(case: Case) -> None:
    """Compute the signals of amounts, opposites and order."""
    common = case.words.shared | case.words.dimensions
    case.amounts = compare(case.known.amounts, case.new.amounts)
    case.opposites = opposites(case.known, case.new, common)
    case.order = order(case.known, case.new, common)


def _verdict(case: Case) -> tuple[Kind, str]:
    known, new, words = case.known, case.new, case.words
    if known.marks == new.marks and (known.marks or known.folded == new.folded):
        return Kind.REINFORCES, "Once spelling and small words are put aside the two are one text."
    only_amounts = not (known.words or new.words)  # "uses 4G", "uses 4096 MB"
    if not words.shared and not (only_amounts and words.dimensions):
        return Kind.DISTINCT, "The two have no word in common that says something."
    if why := _different_things(case):
        return Kind.DISTINCT, why
    _ask(case)
    if case.clashes:
        why = _why_both_can_hold(case)
        return (Kind.DISTINCT, why) if why else (Kind.CONTRADICTS, _disagreement(case))
    why = _why_not_the_same(case)
    return (Kind.DISTINCT, why) if why else (Kind.REINFORCES, "They say the same in other words.")


def _different_things(case: Case) -> str:
    """Say that each text names something the other does not: replacing one word makes another fact."""
    known, new = case.words.known, case.words.new
    if not ((known.full and new.things) or (known.things and new.full)):
        return ""
    names_known, names_new = known.words & case.known.names, new.words & case.new.names
    if names_known and names_new:
        return f"They name different things: {listed(names_known)} and {listed(names_new)}."
    return f"Each speaks of something the other does not: {listed(known.words)} and {listed(new.words)}."


def _why_both_can_hold(case: Case) -> str:
    """Say why two clashing texts do not exclude each other; '' when they do."""
    turned, sequence, amounts, words = case.opposites, case.order, case.amounts, case.words
    freed = sequence.freed_by_known or sequence.freed_by_new
    if sum(map(bool, (amounts.different, turned.clashes, sequence.clashes))) > 1 and not freed:
        return "They turn round in two ways at once, which may come to the same."
    if turned.clashes and not turned.in_one_clause(case.known, case.new):
        return "They turn round in two places at once, which may come to the same."
    if len(amounts.different) > 1:
        return "More than one amount differs: they may speak of two cases."
    if amounts.different:
        more = words.known.full or words.new.full
        return (
            f"The amounts differ, but only one is about {listed(words.known.words | words.new.words)}." if more else ""
        )
    if turned.clashes and (amounts.unsure or any(one.readings != other.readings for one, other in amounts.same)):
        return "What one affirms and the other denies may not be the same amount."
    if turned.about_need and (amounts.only_new if turned.known_denies else amounts.only_known):
        return "What is needed is an amount, what is not needed is the thing."
    if (turned.known_denies or sequence.freed_by_known) and _is_narrower(case, known=True):
        return "What the known text denies is narrower than what the new one says."
    if (turned.new_denies or sequence.freed_by_new) and _is_narrower(case, known=False):
        return "What the new text denies is narrower than what the known one says."
    rest = words.known.full + words.new.full
    rest_aside = len(words.known.aside | words.new.aside) / 2
    if rest + rest_aside and words.full_shared < _COVERAGE * (words.full_shared + rest + rest_aside):
        return "They clash in too small a part of what they say."
    return ""


def _is_narrower(case: Case, *, known: bool) -> bool:
    """Whether a denial has its own condition: "no restart after a renewal" leaves "restart" true."""
    form, rest = (case.known, case.words.known) if known else (case.new, case.words.new)
    freed = case.order.freed_by_known if known else case.order.freed_by_new
    places, clauses = form.places, case.opposites.clauses(form)
    near = frozenset(word for word in rest.words if freed or places[word].lead or places[word].clause in clauses)
    return bool(things(form, near) or (case.amounts.only_known if known else case.amounts.only_new))


def _disagreement(case: Case) -> str:
    if case.amounts.different:
        known, new = case.amounts.different[0]
        return f"Of the same thing one says {known.written}, the other {new.written}."
    if case.order.clashes:
        return f"The order is another: {case.order.clashes[0]}."
    turn = case.opposites.clashes[0]
    return f"Of {listed([turn.word])} the known text says “{turn.known.value}”, the new one “{turn.new.value}”."


def _why_not_the_same(case: Case) -> str:
    """Say why two texts that do not clash are not one fact; '' when they are."""
    words, amounts = case.words, case.amounts
    known, new = words.known, words.new
    if known.full or new.full:
        return f"Only one of them speaks of {listed(known.words | new.words)}."
    if known.words and new.words:
        return f"They differ in a word: {listed(known.words)} and {listed(new.words)}."
    if amounts.unsure:
        return f"{amounts.unsure[0][0].written} and {amounts.unsure[0][1].written} may or may not be the same."
    if only := amounts.only_known or amounts.only_new:
        return f"Only one of them gives an amount: {only[0].written}."
    if len(known.words | new.words) > _MOST_LIGHT or not (words.full_shared or amounts.same):
        return "They share too little."
    if why := _own_fact(case):
        return why
    if _but_for_a_denial(case.known.folded) == _but_for_a_denial(case.new.folded) and _denials(case) % 2:
        return "But for a denial they are one text."
    if case.opposites.doubts:
        turn = case.opposites.doubts[0]
        return f"Of {listed([turn.word])} one says “{turn.known.value}”, the other “{turn.new.value}”."
    if case.order.doubts:
        return f"The order may be another: {case.order.doubts[0]}."
    if case.known.tangled or case.new.tangled:
        return "Too many negatives to be sure."
    return rearranged(case.known, case.new, words.shared)


def _but_for_a_denial(folded: str) -> list[str]:
    return [word for word in folded.split() if word not in NEGATIONS]


def _denials(case: Case) -> int:
    """Count the denials as written."""
    return sum(word in NEGATIONS for word in (*case.known.folded.split(), *case.new.folded.split()))


def _own_fact(case: Case) -> str:
    """Say that an added statement is a fact: a long one, or one with names. A short one may explain the shared one."""
    known, new = case.words.known.aside, case.words.new.aside
    if known and new:
        return f"Each adds something of its own: {listed(known)} and {listed(new)}."
    added, form = known | new, case.known if known else case.new
    shared = case.words.full_shared + len(case.amounts.same)
    if added and (shared < _LEAST_SHARED or len(added) > shared or added & form.names):
        return f"One of them adds a fact of its own: {listed(added)}."
    return ""
