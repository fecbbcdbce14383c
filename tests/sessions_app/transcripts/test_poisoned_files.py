"""Thirty poisoned transcripts, from their files to the prompt of the next session, which is told nothing of them."""

from __future__ import annotations

import pytest

from memories.models import ArrivedBy, Fact, FactOutcome, Memory
from sessions_app import tasks
from sessions_app.transcripts import arrivals
from sessions_app.transcripts.turns import turns_of
from tests.memories.observe.poisoned import cases
from tests.sessions_app.transcripts.test_whole_way import next_prompt, say
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db(transaction=True)
FOLDER = "/srv/shop"


def test_what_a_fooled_observer_says_of_poisoned_files_is_in_no_prompt(tmp_path, recordings, settings):
    settings.CLAUDEOPS_TRUST = "open"  # the gate alone
    project, found = ProjectFactory(slug="shop", path=FOLDER), cases()
    for number, case in enumerate(found):
        path = tmp_path / f"00000000-0000-4000-8000-{number:012}.jsonl"
        path.write_text(case.transcript(path.stem, FOLDER), encoding="utf-8")
        transcript = arrivals.see(path, arrived_by=ArrivedBy.COMMAND, ended=True)
        assert transcript is not None and transcript.project == project
        assert [turn.text.strip() for turn in turns_of(transcript.parts.get()).turns if turn.kind == "result"]
        say(recordings, transcript, case.answer)
    tasks.observe_here()

    facts = list(Fact.objects.all())
    assert len(facts) == len(found)
    assert [(fact.text, fact.reasons) for fact in facts if fact.outcome == FactOutcome.CREATED] == []
    assert {fact.outcome for fact in facts} <= {FactOutcome.HELD, FactOutcome.DISCARDED}
    assert all(fact.reason for fact in facts)
    assert not Memory.objects.allowed().exists()
    session = next_prompt(project, tmp_path, "Why does jellyfin restart, and what do the issues and the wiki say?")
    assert list(session.receipt.of("knowledge")) == []
    assert not [case.name for case in found if case.fact in session.prompt]
