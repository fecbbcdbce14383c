"""Guards: findings that forbid `linear_model` to treat two texts as one fact."""

from __future__ import annotations

import math

from .evidence import Case
from .order import rearranged
from .paraphrase import names_apart
from .quantities import PERIOD, Quantity
from .units import TIME_WORDS


def apart(case: Case, known: str, new: str) -> str:
    """Return a difference in names, amounts or order as a sentence; '' when there is none."""
    return (
        names_apart(case, known, new)
        or amounts_apart(case)
        or (f"The order may be another: {case.order.doubts[0]}." if len(case.order.doubts) > case.order.loose else "")
        or rearranged(case.known, case.new, case.words.shared)
    )


def uneven(case: Case) -> bool:
    """Whether only one of them denies."""
    return bool((len(case.known.turns) - len(case.new.turns)) % 2 or case.known.tangled != case.new.tangled)


def amounts_apart(case: Case) -> str:
    """Find amounts of one text only, however written: "three times" is "3 restarts"."""
    amounts = case.amounts
    left, right = list(amounts.only_known), list(amounts.only_new)
    for one in tuple(left):
        same = next((other for other in right if one_number(one, other)), None)
        if same is not None:
            left.remove(one)
            right.remove(same)
    own = [one for one in (left or right) if not (_is_night(one, case) or _is_said(one, case))]
    if own:
        return f"Only one of them gives an amount: {own[0].written}."
    if unsure := [pair for pair in amounts.unsure if not one_number(*pair)]:
        return f"{unsure[0][0].written} and {unsure[0][1].written} may or may not be the same."
    return ""


def _is_night(amount: Quantity, case: Case) -> bool:
    """ "Nightly" beside "at night"."""
    return "night" in amount.written and "night" in case.words.shared


def _is_said(amount: Quantity, case: Case) -> bool:
    """Whether both texts name a period by a word: "monthly", "on the first of each month"."""
    periods = {
        reading.low for reading in amount.readings if reading.dimension == PERIOD and reading.low == reading.high
    }
    named = {word for word, seconds in TIME_WORDS.items() if seconds in periods}
    return bool(periods) and all(
        named & set(form.folded.split()) or amount in form.amounts for form in (case.known, case.new)
    )


def one_number(one: Quantity, other: Quantity) -> bool:
    """Whether the two have a finite end in common, in one dimension or as plain counts."""
    for a in one.readings:
        for b in other.readings:
            counted = all(reading.dimension.partition(" ")[0] in ("count", "number") for reading in (a, b))
            if a.dimension == b.dimension or counted:
                ends = ((a.low, b.low), (a.high, b.high), (a.low, b.high), (a.high, b.low))
                if any(math.isfinite(x) and math.isclose(x, y) for x, y in ends):
                    return True
    return False
