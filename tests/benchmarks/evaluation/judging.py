"""Judge labelled pairs by the model of the role judge, as its hourly task would. Its calls are stored and count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memories.judging.question import INSTRUCTIONS, Pair, Verdicts, message, read
from memories.llm import Answer, Reason, ask
from memories.llm.batch import SIZES
from memories.matching import Kind, Relation, may_be_one
from tests.benchmarks.evaluation.sets import PairLine
from tests.benchmarks.evaluation.vectors import Progress


@dataclass(frozen=True, slots=True)
class Settled:
    """The relation of each pair with the judge's word, in their order, and what that took.

    `asked` counts the pairs that matching leaves unsure, `unanswered` those of them without a verdict, whose relation
    stays. Tokens and cost (US dollars) are of the answered calls, as the backend states them. `why` says why the model
    was not asked to the end, "" when it was.
    """

    kinds: list[Kind]
    asked: int
    unanswered: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    why: str


def settle(pairs: Sequence[PairLine], found: Sequence[Relation], progress: Progress | None = None) -> Settled:
    """Ask about what matching would note as a question: contradictions, and distinct pairs that may be one.

    A contradiction stays one when the model says that both say the same: a person decides that.
    """
    kinds = [relation.kind for relation in found]
    unsure = [
        place
        for place, one in enumerate(found)
        if one.kind == Kind.CONTRADICTS or (one.kind == Kind.DISTINCT and may_be_one(one.evidence))
    ]
    answers: list[Answer[Verdicts]] = []
    unanswered, calls, why = 0, 0, ""
    for start in range(0, len(unsure), SIZES[0]):
        batch = unsure[start : start + SIZES[0]]
        asked = [Pair(pairs[place].known, pairs[place].new, pairs[place].service or None) for place in batch]
        answer = ask("judge", INSTRUCTIONS, message(asked), Verdicts)
        if isinstance(answer, Answer):
            answers.append(answer)
            verdicts = read(answer.value, len(batch))
        elif answer.reason == Reason.UNREADABLE:
            verdicts = [None] * len(batch)
        else:
            why = answer.why
            unanswered += len(unsure) - start
            break
        calls += 1
        for place, verdict in zip(batch, verdicts, strict=True):
            if verdict is None:
                unanswered += 1
            elif kinds[place] == Kind.DISTINCT or verdict.relation != Kind.REINFORCES:
                kinds[place] = verdict.relation
        if progress is not None:
            progress(start + len(batch), len(unsure))
    return Settled(
        kinds=kinds,
        asked=len(unsure),
        unanswered=unanswered,
        calls=calls,
        tokens_in=sum(answer.tokens_in or 0 for answer in answers),
        tokens_out=sum(answer.tokens_out or 0 for answer in answers),
        cost_usd=sum(answer.cost_usd or 0.0 for answer in answers),
        why=why,
    )
