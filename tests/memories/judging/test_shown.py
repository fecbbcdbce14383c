"""`manage.py model judge`, and how the judge's work is shown: as the system's, with its reason, undoable."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from memories.exchange.judgements import answered_pairs
from memories.history.sentences import plain, sentence
from memories.judging import judge_waiting
from memories.lifecycle import disagreements
from memories.models import Memory, MemoryChange
from tests.memories.judging.conftest import a_pair

pytestmark = pytest.mark.django_db


def run(*arguments):
    out = StringIO()
    call_command("model", "judge", *arguments, stdout=out)
    return out.getvalue()


def test_dry_run_counts_what_waits_and_asks_nothing(judge):
    for _ in range(21):
        a_pair()
    assert run("--dry-run") == "21 pairs to judge, in about 2 calls.\n"
    assert judge.asked == []


def test_it_says_what_became_of_the_pairs(judge):
    judge.says[a_pair().newer.observation] = "reinforces"
    a_pair()
    found = json.loads(run("--json"))["result"]
    assert (found["actions"]["merged"], found["actions"]["kept"], found["calls"], found["waiting"]) == (1, 1, 1, 0)
    assert (found["tokens_in"], found["tokens_out"]) == (200, 20)
    a_pair()
    assert "1 call, $0.0000; 0 pairs left." in run()


def test_it_refuses_with_the_reason_when_pairs_wait_and_no_judge_is_set_up(capsys):
    assert "0 pairs left" in run()
    a_pair()
    with pytest.raises(SystemExit) as ended:
        run("--json")
    assert ended.value.code == 1


def test_the_history_names_the_model(judge):
    row = a_pair()
    judge.usual = "reinforces"
    judge_waiting()
    change = MemoryChange.objects.filter(memory=row.older, kind="merged").get()
    assert plain(sentence(change)) == "The model small merged another memory into it."
    assert change.reason == "A model says: As it says."


def test_what_the_judge_answered_is_no_label_of_a_person(judge):
    a_pair()
    judge_waiting()
    disagreements.answer(a_pair(), "kept", by="ann")
    assert len(list(answered_pairs())) == 1


def test_an_answer_of_the_judge_is_undone_in_the_inbox(judge, client, operator):
    row = a_pair()
    judge.usual = "reinforces"
    judge_waiting()
    client.force_login(operator)
    page = client.get(reverse("inbox"), {"view": "answered"}).content.decode()
    assert "judge:small" in page and "The model small says that they say the same: As it says." in page
    client.post(reverse("inbox-undo", args=["duplicate", row.pk]), {"view": "answered"})
    assert Memory.objects.filter(active=True).count() == 2


def test_a_reason_of_the_model_is_shown_as_text(judge, client, operator):
    a_pair("contradiction", older={"source": "human"})
    judge.answer = lambda pairs: json.dumps(
        {"verdicts": [{"pair": 1, "relation": "contradicts", "reason": "<script>alert(1)</script>"}]}
    )
    judge_waiting()
    client.force_login(operator)
    page = client.get(reverse("inbox")).content.decode()
    assert "&lt;script&gt;alert(1)" in page and "<script>alert" not in page
