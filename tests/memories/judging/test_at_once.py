"""Several workers and people at once: each pair is asked about once, and a person's answer stays."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from memories.judging import judge_waiting
from memories.judging.rules import Action
from memories.lifecycle import disagreements
from memories.llm.batch import LASTS
from memories.models import Disagreement, Memory, MemoryChange
from tests.memories.judging.conftest import a_pair

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_workers_judge_each_pair_once(judge, monkeypatch):
    monkeypatch.setattr("memories.llm.batch.SIZES", (3, 3, 3))
    judge.usual = "reinforces"
    for _ in range(18):
        a_pair()
    together = Barrier(2, timeout=60)

    def work():
        try:
            together.wait()
            return judge_waiting()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        done = [one.result() for one in [pool.submit(work), pool.submit(work)]]
    assert sum((one.actions for one in done), Counter()) == {Action.MERGED: 18}
    asked = Counter(pair["second"] for pairs in judge.asked for pair in pairs)
    assert len(asked) == 18 and set(asked.values()) == {1}
    assert Disagreement.objects.filter(state="answered", judging_until=None).count() == 18
    assert MemoryChange.objects.filter(kind="merged").count() == 36


def test_what_a_person_answers_while_the_model_is_asked_stays(judge):
    row = a_pair()

    def answers_first(pairs):
        disagreements.answer(row, "kept", by="ann")
        connection.close()
        return json.dumps({"verdicts": [{"pair": 1, "relation": "reinforces"}]})

    judge.answer = answers_first
    assert not judge_waiting().actions
    row.refresh_from_db()
    assert (row.answer, row.by, row.judged_at) == ("kept", "ann", None)
    assert Memory.objects.filter(active=True).count() == 2


def test_an_answer_that_comes_after_its_claim_was_taken_over_is_left(judge):
    row = a_pair()
    later = timezone.now() + 2 * LASTS

    def taken_over(pairs):
        Disagreement.objects.update(judging_until=later)
        connection.close()
        return json.dumps({"verdicts": [{"pair": 1, "relation": "reinforces"}]})

    judge.answer = taken_over
    assert not judge_waiting().actions
    row.refresh_from_db()
    assert (row.judged, row.judging_until - later) == ({}, timedelta())
