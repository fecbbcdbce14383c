"""Select what one part of a prompt tells: candidates in their order, within a budget, and nothing twice. Pure.

The first candidate that does not fit ends the selection, so that none takes the place of one that comes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memories.capture.text import fold

TOLD_ONCE = "told once: another part of the prompt says the same"

Texts = frozenset[str]
"""The texts that a prompt has already, by `key_of`."""
NOTHING: Texts = frozenset()


def key_of(text: str) -> str:
    """Return what two texts have in common that say the same words, whatever their case, blanks and last full stop."""
    return fold(text).casefold().rstrip(".")


def keys_of(texts: Iterable[str]) -> Texts:
    return frozenset(map(key_of, texts))


class Candidate(Protocol):
    @property
    def observation(self) -> str: ...


C = TypeVar("C", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Chosen(Generic[C]):
    """What is told, in order, with the text of its block and the tokens of it (characters / 4).

    `left_out` are those for which there is no room, and `why`; `again` those that the prompt tells already.
    """

    included: tuple[C, ...] = ()
    left_out: tuple[C, ...] = ()
    again: tuple[C, ...] = ()
    why: str = ""
    text: str = ""
    tokens: int = 0


def select(
    candidates: Iterable[C],
    block: Callable[[Sequence[C]], tuple[str, int]],
    *,
    size: Callable[[Sequence[C]], int] | None = None,
    budget: int,
    limit: int | None = None,
    told: Texts = NOTHING,
    after: Sequence[C] = (),
    named: int | None = None,
) -> Chosen[C]:
    """Take candidates until their block would have more than `budget` tokens, or `limit` are in it.

    `block` returns the text of some of them, headings included, and its tokens; with more of them it is never shorter.
    `size` returns its tokens alone, where that is faster.
    What the prompt has `told` already is left out. Those of `after`, which fit, are in it already. No more is read than
    is needed to name `named` that are left out (from 1; None: all).
    """
    included, left_out, again = list(after), list[C](), list[C]()
    size, why = size or (lambda some: block(some)[1]), ""
    for one in candidates:
        if told and key_of(one.observation) in told:
            again.append(one)
            continue
        if not why and len(included) == limit:
            why = f"the limit of {limit:,} memories in a prompt is reached"
        if not why:
            if size([*included, one]) <= budget:
                included.append(one)
                continue
            why = f"the budget of {budget:,} tokens is full"
        left_out.append(one)
        if len(left_out) == named:
            break
    text, tokens = block(included) if included else ("", 0)
    return Chosen(tuple(included), tuple(left_out), tuple(again), why, text, tokens)
