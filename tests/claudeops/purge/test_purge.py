"""`manage.py memory purge` leaves no byte of a text, and breaks nothing of what stays."""

from __future__ import annotations

import json

import pytest
from django.db import connection

from memories.models import Memory, Proposal, RecallMark, Segment, TelemetryRecord, Transcript
from sessions_app.models import Injected, InjectionReceipt, LogEntry, Purge, PurgeState, Session
from sessions_app.runner.launch import folder_of
from sessions_app.transcripts.files import digest
from tests.claudeops.purge.house import OTHER, TEXT, furnish, places_of
from tests.commands import document, run
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dry_run_says_where_the_text_is_and_writes_nothing():
    memory = furnish()
    before = places_of()
    assert before
    code, out, _ = run("memory", "purge", memory.pk)
    assert code == 0 and "Nothing was changed. Add --yes to do it" in out
    for place in ("memories", "session_log_entries.text", "injection_receipts.text", "sessions/**/stdout-1.jsonl"):
        assert place in out
    assert TEXT not in out and "flower" not in out
    assert places_of() == before and not Purge.objects.exists()


def test_a_purge_leaves_no_byte_and_a_receipt():
    memory = furnish()
    code, answer = document("memory", "purge", memory.pk, "--yes")
    assert (code, answer["ok"]) == (0, True)
    if connection.vendor == "sqlite":  # PostgreSQL's own files keep old versions of rows until they are written again
        assert places_of() == []
    assert "flower" not in json.dumps(answer)
    purge = Purge.objects.get()
    assert (purge.state, purge.work, purge.problem) == (PurgeState.DONE, {}, "")
    removed = purge.receipt["removed"]
    assert removed["memories"] == 1 and removed["sessions/**/stdout-1.jsonl"] == 2
    assert TelemetryRecord.objects.filter(action="memory.purge.completed").count() == 1
    again, answer = document("memory", "purge", "--resume")
    assert (again, answer["result"]["purges"]) == (0, [])


def test_what_stays_is_as_it_was():
    memory = furnish()
    run("memory", "purge", memory.pk, "--yes")
    session = Session.objects.get()
    assert not Memory.objects.filter(pk=memory.pk).exists() and Memory.objects.filter(observation=OTHER).exists()
    assert Memory.objects.get(observation__startswith="Somebody").observation.startswith("Somebody said: [purged]. Ask")
    receipt = InjectionReceipt.objects.get()
    assert (receipt.text, receipt.sha256) == (f"- [purged]\n- {OTHER}", "purged")
    assert [one["observation"] for one in receipt.included] == ["[purged]", OTHER]
    assert (session.prompt_sha256, session.structured) == ("purged", {"m": ["[purged]"]})
    assert not Injected.objects.exists() and not RecallMark.objects.exists()
    assert Proposal.objects.get().text == "Two things that are known"
    assert Segment.objects.get().narrative == "[purged]"
    assert LogEntry.objects.order_by("seq").last().text == OTHER
    log = folder_of(session) / "stdout-1.jsonl"
    assert [json.loads(line) for line in log.read_text().splitlines()][2] == {"text": OTHER}
    transcript = Transcript.objects.get()
    assert log.stat().st_size == transcript.observed_to
    assert transcript.prefix_sha256 == digest(log, transcript.observed_to) and log.stat().st_mode & 0o777 == 0o400
    assert run("counts", "check")[0] == 0


def test_a_query_removes_the_memories_that_contain_it_and_the_text_everywhere():
    furnish()
    assert run("memory", "purge", "--query", "BLUE – flower pot", "--yes")[0] == 0
    assert places_of("blue – flower pot") == []
    assert Memory.objects.count() == 1
    assert Purge.objects.get().chosen["query"].startswith("sha256:")


@pytest.mark.parametrize("name", ["service", "agent", "project", "session"])
def test_filters_choose_memories(name):
    memory, other = furnish(), MemoryFactory(service="nas", observation="The nas has four disks")
    given = {"service": "vault", "session": memory.session_id}.get(name)
    if given is None:
        return
    assert run("memory", "purge", f"--{name}", given, "--yes")[0] == 0
    assert not Memory.objects.filter(pk=memory.pk).exists() and Memory.objects.filter(pk=other.pk).exists()


def test_ids_and_filters_do_not_go_together_and_a_short_query_is_refused():
    memory = furnish()
    assert document("memory", "purge", memory.pk, "--service", "vault")[1]["error"]["code"] == "usage"
    assert document("memory", "purge", "--query", "pot")[1]["error"]["code"] == "short"
    assert document("memory", "purge", "99999")[1]["error"]["code"] == "memory_not_found"
