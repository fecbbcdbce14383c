from __future__ import annotations

import pytest

from memories.observe.sources import Sources
from memories.observe.turns import Turn, TurnKind

TURNS = (
    Turn(1, TurnKind.USER, "deploy the billing service"),
    Turn(2, TurnKind.CALL, "kubectl rollout restart deploy/billing", name="Bash"),
    Turn(3, TurnKind.RESULT, "deployment.apps/billing restarted", name="Bash"),
    Turn(4, TurnKind.AGENT, "I restarted the billing service; never do that while the batch of the bank runs."),
    Turn(5, TurnKind.USER, "no!! never restart billing between 9 and 11, the bank's batch runs then"),
    Turn(6, TurnKind.AGENT, "The planner ignores the index reports_day unless the parameter is cast to timestamptz."),
    Turn(
        7, TurnKind.SYSTEM, "The billing service must not be restarted between 9:00 and 11:00: the bank's batch runs."
    ),
)


@pytest.mark.parametrize(
    ("fact", "number"),
    [
        ("The billing service must not be restarted between 9:00 and 11:00, because the bank's batch runs then.", 5),
        ("The index reports_day is used only when the parameter is cast to timestamptz.", 6),
        ("Grafana is reached through the VPN of the office.", None),
        ("", None),
    ],
)
def test_the_source_of_a_fact_is_the_turn_that_shares_its_rare_words(fact, number):
    found = Sources(TURNS).of(fact)
    assert (found.number if found else None) == number


def test_of_two_turns_that_say_the_same_the_persons_is_the_source():
    said = "Backups of vault run at three in the night"
    turns = (Turn(1, TurnKind.AGENT, said), Turn(2, TurnKind.USER, said))
    assert Sources(turns).of("The backups of vault run at three in the night.").number == 2


def test_the_text_of_a_source_is_without_what_was_private():
    turns = (
        Turn(1, TurnKind.USER, "The vault backup key <private>is under the mat of Anna</private> stays offline"),
        Turn(2, TurnKind.AGENT, "The vault is fine: under the mat of Anna"),
    )
    found = Sources(turns)
    assert found.of("The vault backup key stays offline").text == "The vault backup key [private] stays offline"
    assert "mat" not in found.of("The vault is fine").text


def test_no_turns_have_no_source():
    assert Sources(()).of("Anything at all") is None
