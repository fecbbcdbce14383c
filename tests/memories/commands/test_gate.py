"""`manage.py gate`, and the report behind it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.gate import DEFAULTS, Thresholds
from memories.lifecycle import gate_decisions
from memories.models import GateThreshold
from memories.queries import gate_report
from memories.queries.gate_report import chance, disagrees, propose
from tests.support import commands
from tests.support.factories import FactFactory, GateDecisionFactory

pytestmark = pytest.mark.django_db


run, document = partial(commands.run, "gate"), partial(commands.document, "gate")


def decided(verdict, reasons, label="", count=1, **given):
    for _ in range(count):
        GateDecisionFactory(verdict=verdict, reasons=reasons, label=label, **given)


def said(confidence, label, reasons=(), verdict="allow", text="The user prefers short answers in German"):
    fact = FactFactory(text=text)
    decided(verdict, list(reasons), label, fact=fact, said_gate="allow", said_confidence=confidence, model="haiku")


@pytest.mark.parametrize(
    ("verdict", "labels"),
    [("hold", ["released"]), ("discard", ["released", "edited"]), ("allow", ["discarded", "edited"])],
)
def test_when_a_person_disagrees(verdict, labels):
    assert [label for label in ("released", "discarded", "edited") if disagrees(verdict, label)] == sorted(
        labels, key=["released", "discarded", "edited"].index
    )


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_range_of_chance_holds_the_share(part, rest):
    low, high = chance(part, part + rest)
    assert 0 <= low <= high <= 1
    if part + rest:
        assert low <= part / (part + rest) + 1e-9
        assert part / (part + rest) <= high + 1e-9


def test_the_range_of_chance_is_wide_where_there_is_little():
    assert tuple(round(one, 2) for one in chance(3, 8)) == (0.14, 0.69)
    assert tuple(round(one, 2) for one in chance(30, 80)) == (0.28, 0.48)


def test_the_report_counts_by_rule_and_by_model_whatever_there_is():
    decided("hold", ["url"], "released", 3)
    decided("hold", ["url"], "discarded", 2)
    decided("hold", ["url", "command"], "edited", 1)
    decided("hold", ["url"], "undone", 1)
    decided("discard", ["narration"], "", 4)
    decided("hold", ["low-confidence"], "released", 1, said_gate="allow", said_confidence=0.6, model="haiku")
    decided("allow", [], "discarded", 2, said_gate="allow", said_confidence=0.9, model="haiku")
    decided("hold", ["url"], "released", 1, at=timezone.now() - timedelta(days=100))
    made = gate_report.report(timezone.now())
    assert (made.decisions, made.labelled) == (14, 9)
    assert [(row.name, row.verdict, row.decisions, row.labelled, row.disagreed) for row in made.rules] == [
        ("url", "hold", 7, 6, 3),
        ("narration", "discard", 4, 0, 0),
    ]
    assert [(row.name, row.verdict, row.decisions, row.labelled, row.disagreed) for row in made.models] == [
        ("haiku", "allow", 3, 3, 2)
    ]


def test_the_report_costs_the_same_for_many_decisions(django_assert_num_queries):
    for count in (10, 10):
        decided("hold", ["url"], "released", count)
        with django_assert_num_queries(3):
            gate_report.report(timezone.now())


def test_the_report_says_what_it_lacks_for_a_proposal():
    decided("hold", ["url"], "released", 3)
    decided("hold", ["url"], "discarded", 5)
    code, out, _ = run("report")
    assert code == 0
    assert "8 decisions in 90 days, 8 of them labelled by people." in out
    assert "3 of 8, 38% (14% to 69%)" in out
    assert "it holds an address of the web" in out
    assert "0 of 30 labels that it takes" in out


def test_enough_labels_propose_a_threshold_and_the_command_that_sets_it():
    for _ in range(20):
        said(0.9, "released")
        said(0.8, "released", ("low-confidence",), "hold")
        said(0.75, "discarded")
    said(0.95, "discarded", ("url",), "hold")  # a rule held it: it says nothing of the threshold
    code, answer = document("report")
    assert code == 0
    allow, reference = answer["result"]["thresholds"]
    assert (allow["name"], allow["now"], allow["value"], allow["labels"]) == ("allow", 0.7, 0.8, 60)
    assert reference["value"] is None
    (action,) = answer["next_actions"]
    assert action["command"].startswith("manage.py gate apply allow 0.8 --reason ")
    assert gate_decisions.current_thresholds() == DEFAULTS


def test_facts_with_an_exact_reference_speak_for_the_other_threshold():
    for _ in range(30):
        said(0.6, "released", ("path",), text="Certificates lie in /etc/caddy/certs")
    _, answer = document("report")
    assert [(one["name"], one["value"]) for one in answer["result"]["thresholds"]] == [
        ("allow", None),
        ("reference", 0.3),
    ]


def test_no_value_is_proposed_where_none_would_do():
    labels = [(0.9, number % 2 == 0) for number in range(40)]
    assert propose("allow", Thresholds(), labels).value is None
    assert propose("allow", Thresholds(), [(0.9, True)] * 9 + [(0.3, False)] * 31).value is None


def test_a_threshold_is_set_with_its_reason_and_stands_in_the_history():
    code, out, _ = run("apply", "allow", "0.8", "--reason", "Half of them were discarded.", "--by", "ann")
    assert (code, out) == (0, "allow is 0.8 from now on; it was 0.7.\n")
    row = GateThreshold.objects.get()
    assert (row.by, row.reason, row.before, row.value) == ("ann", "Half of them were discarded.", 0.7, 0.8)
    assert run("apply", "allow", "0.8", "--reason", "Again.")[1] == "allow is 0.8 already.\n"
    assert "0.7 → 0.8" in run("history")[1]
    _, answer = document("history")
    assert answer["result"]["thresholds"] == {"allow": 0.8, "reference": 0.5}
    assert [(one["name"], one["by"]) for one in answer["result"]["history"]] == [("allow", "ann")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("apply", "alow", "0.8", "--reason", "x"), "There is no threshold 'alow'; there are allow and reference."),
        (("apply", "allow", "8", "--reason", "x"), "allow is 8.0; allowed is a number from 0 to 1."),
        (("apply", "allow", "0.4", "--reason", "x"), "reference would be 0.5, above allow, which is 0.4."),
        (("report", "--days", "0"), "--days is 0; allowed is 1 to 3650."),
    ],
)
def test_wrong_input_is_named_and_changes_nothing(arguments, words):
    code, _, err = run(*arguments)
    assert code == 1
    assert words in err
    assert not GateThreshold.objects.exists()
