"""What the pure parts of observing cost: prepare 1,000 turns, read an answer, find what supports facts, categories."""

from __future__ import annotations

from collections.abc import Sequence

from memories.capture.support import Evidence
from memories.observe.answer import parse
from memories.observe.categories import by_keywords
from memories.observe.prepare import MOST, prepare
from memories.observe.turns import PartTurns, Turn, TurnKind
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms

TURNS = 1_000
FACTS = 100
OUTPUT = "\n".join(f"03:00:{n % 60:02} node-{n % 7} vault[{n}]: lease renewed in {n} ms" for n in range(60))
SAID = {
    TurnKind.USER: "No, never restart billing service number {n} between 9 and 11: the batch of the bank runs then.",
    TurnKind.AGENT: "I look at the **logs** of host {n} first, because `vault` may be sealed after its reboot. " * 5,
    TurnKind.CALL: "kubectl -n billing-{n} logs deploy/ledger --since=1h | grep -i error",
    TurnKind.RESULT: OUTPUT,
}
ANSWER = "".join(
    f'<segment turns="{n}-{n + 9}"><narrative>The ledger of shop {n} was slow.</narrative><facts>\n'
    + "".join(
        f"- 🟡 [gate=allow confidence=0.8 category=jc:operations turn={n}] Billing service {n} must not be restarted "
        f"between 9 and {fact}, because the bank's batch runs then.\n"
        for fact in range(4)
    )
    + "</facts></segment>\n"
    for n in range(FACTS // 4)
)


def evidence_of(turns: Sequence[Turn]) -> Evidence:
    evidence = Evidence()
    for turn in turns:
        if turn.kind is TurnKind.USER:
            evidence.person(turn.number, turn.text)
        elif turn.kind is TurnKind.AGENT:
            evidence.agent(turn.number, turn.text)
        elif turn.kind is TurnKind.CALL:
            evidence.call(turn.text)
        else:
            evidence.depends(turn.number, turn.text, turn.source)
    return evidence


def test_observe(report: Report, smoke: bool) -> None:
    times = 1 if smoke else 5
    kinds = list(SAID)
    turns = tuple(
        Turn(n, kinds[n % 4], SAID[kinds[n % 4]].replace("{n}", str(n)), name="Bash", source="logs: vault")
        for n in range(1, TURNS + 1)
    )
    told = tuple(f"Service number {n} takes {n} seconds to start after a reboot of its node" for n in range(200))
    private = (
        Turn(0, TurnKind.USER, "<private>my birthday is in March of 1984</private> Begin, please."),
        *turns,
    )
    rows = []
    for name, part in (
        ("nothing told, nothing private", PartTurns(turns=turns)),
        ("200 memories told", PartTurns(turns=turns, told=told)),
        ("200 memories told, a private passage", PartTurns(turns=private, told=told)),
    ):
        series = Series()
        for _ in range(times):
            found = series.time(lambda part=part: prepare(part))
            assert 0 < len(found.text) <= MOST
        rows.append((f"prepare {TURNS:,} turns: {name}", ms(series.median)))
    series = Series()
    for _ in range(times):
        parsed = series.time(lambda: parse(ANSWER))
        assert parsed.unread == ()
    rows.append((f"read an answer of {FACTS} facts", ms(series.median)))
    facts = [fact.text for segment in parsed.segments for fact in segment.facts]
    assert len(facts) == FACTS
    series, asked = Series(), Series()
    for _ in range(times):
        evidence = series.time(lambda: evidence_of(turns))
        found = asked.time(lambda evidence=evidence: list(map(evidence.support, facts)))
        assert all(one.quotes for one in found)
    rows.append((f"index {TURNS:,} turns as evidence", ms(series.median)))
    rows.append((f"who supports {FACTS} facts", ms(asked.median)))
    series = Series()
    for _ in range(times):
        assert all(series.time(lambda: list(map(by_keywords, facts))))
    rows.append((f"keywords of {FACTS} facts", ms(series.median)))
    report("OBSERVE, the pure parts, median", ("what", "time"), rows)
