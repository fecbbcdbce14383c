"""`manage.py memory purge` leaves no byte of a text, and breaks nothing of what stays."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.tasks import async_task

from claudeops.features.backups.folder import backups_folder, complete
from claudeops.features.purge.choice import Choice, choose
from memories.files.sync import sync_file
from memories.lifecycle import verbs
from memories.models import (
    AgentFile,
    Memory,
    MemoryChange,
    Proposal,
    Recalled,
    RecallMark,
    Segment,
    Source,
    TelemetryRecord,
    Transcript,
)
from memories.store import Provenance, Statement, remember
from sessions_app.models import Event, Injected, InjectionReceipt, LogEntry, Purge, PurgeState, Session
from sessions_app.runner.launch import folder_of
from sessions_app.transcripts.files import digest
from tests.claudeops.backups.house import need_programs
from tests.claudeops.purge.house import OTHER, TEXT, furnish, places_of
from tests.support.commands import document, run
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

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


def test_filters_choose_memories_and_all_apply():
    shop = ProjectFactory(slug="shop")
    session = SessionFactory(agent=AgentFactory(slug="smith"))
    texts = {name: f"The {name} has four disks in a row" for name in ("one", "two", "three", "four")}
    one = MemoryFactory(observation=texts["one"], service="nas", project=shop)
    two = MemoryFactory(observation=texts["two"], service="nas")
    three = MemoryFactory(observation=texts["three"], session=session)
    four = MemoryFactory(observation=texts["four"], agent="smith")
    for given, chosen in (
        ({"service": "nas"}, {one, two}),
        ({"service": "nas", "project": "shop"}, {one}),
        ({"agent": "smith"}, {three, four}),
        ({"session": session.pk}, {three}),
        ({"query": "FOUR disks"}, {one, two, three, four}),
    ):
        assert set(choose(Choice(**given)).memories) == {memory.pk for memory in chosen}, given


def test_all_that_a_session_wrote_is_removed():
    memory = furnish()
    session = Session.objects.get()
    code, answer = document("memory", "purge", "--session", session.pk, "--yes")
    assert code == 0, answer
    session.refresh_from_db()
    assert (session.response, session.summary, session.structured, session.log_file) == (
        "[purged]",
        "[purged]",
        None,
        "",
    )
    assert not LogEntry.objects.exists() and not Event.objects.exists() and not Transcript.objects.exists()
    assert not folder_of(session).exists() and not Memory.objects.filter(pk=memory.pk).exists()
    assert places_of() == [] or connection.vendor == "postgresql"
    assert run("counts", "check")[0] == 0


def test_what_a_person_wrote_is_removed_and_the_account_stays():
    user = get_user_model().objects.create_user("petra")
    remember(Statement("behavior", TEXT, "vault"), Provenance.typed_by("petra"))
    stays = MemoryFactory(observation=OTHER)
    verbs.deactivate(stays, by="petra", reason="I do not like it")
    SessionFactory(
        requested_by="petra", task="Look after my flowers, please", prompt="Do: Look after my flowers, please"
    )
    Recalled.objects.create(query="flowers", surface="page", actor="petra")
    assert run("memory", "purge", "--person", "petra", "--yes")[0] == 0
    assert list(Memory.objects.values_list("pk", flat=True)) == [stays.pk]
    session = Session.objects.get()
    assert (session.task, session.prompt, session.requested_by) == ("[purged]", "Do: [purged]", "petra")
    assert Recalled.objects.get().query == "[purged]"
    assert not MemoryChange.objects.filter(reason__contains="like").exists()
    assert get_user_model().objects.filter(pk=user.pk).exists() and places_of() == []


def test_lines_of_agents_files_are_removed_and_no_sync_takes_them_in_again(tmp_path):
    project = ProjectFactory(slug="shop", path=str(tmp_path))
    for text in (TEXT, OTHER):
        remember(
            Statement("pattern", text, taxonomy="agent"),
            Provenance(Source.HUMAN, "ann", project_id=project.pk, agent="qa", channel="human"),
        )
    sync_file(project, "qa", create=True)
    path = tmp_path / AgentFile.objects.get().path
    assert TEXT in path.read_text()
    assert run("memory", "purge", Memory.objects.get(observation=TEXT).pk, "--yes")[0] == 0
    sync_file(project, "qa", force=True)
    assert TEXT not in path.read_text() and OTHER in path.read_text()
    assert [memory.observation for memory in Memory.objects.all()] == [OTHER] and Memory.objects.get().active
    assert places_of() == []


def test_tasks_of_the_queue_and_their_results_are_removed():
    memory = furnish()
    async_task("sessions_app.tasks.handle_hook", "Stop", {"text": TEXT}, cluster="default")
    async_task("sessions_app.tasks.handle_hook", "Stop", {"text": OTHER}, cluster="default")
    for name, text in (("a", TEXT), ("b", OTHER)):
        Task.objects.create(
            id=name,
            name=name,
            func="x",
            started=timezone.now(),
            stopped=timezone.now(),
            success=True,
            args=(text,),
            result={"said": [text]},
        )
    assert run("memory", "purge", memory.pk, "--yes")[0] == 0
    assert [task.pk for task in Task.objects.all()] == ["b"] and OrmQ.objects.get().task["args"][1] == {"text": OTHER}


def test_backups_are_named_and_removed_when_asked(monkeypatch):
    need_programs(monkeypatch)
    memory = furnish()
    assert run("backup")[0] == 0
    assert "BACKUPS from before still hold it" in run("memory", "purge", memory.pk)[1]
    code, out, _ = run("memory", "purge", memory.pk, "--yes", "--backups")
    assert code == 0 and "BACKUPS" not in out and not complete(backups_folder())
    assert places_of() == []


def test_files_outside_and_other_hosts_are_named_and_names_are_kept(tmp_path):
    memory = furnish()
    projects = tmp_path / "home" / ".claude" / "projects" / "-work"
    projects.mkdir(parents=True)
    (projects / "c1.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    Session.objects.update(cli_session_id="c1", host="far-away")
    code, out, _ = run("memory", "purge", memory.pk, "--yes")
    assert code == 0 and str(projects / "c1.jsonl") in out and "far-away" in out
    assert TEXT in json.loads((projects / "c1.jsonl").read_text())["text"]
    AgentFactory(slug="flowerpot")
    code, out, _ = run("memory", "purge", "--query", "flowerpot", "--yes")
    assert code == 1 and "It stays where it is a name or a key: agents.slug" in out


def test_a_short_text_goes_with_its_memory_and_elsewhere_when_asked():
    memory, other = MemoryFactory(observation="Use nx"), MemoryFactory(observation="He said: use nx, always")
    code, out, _ = run("memory", "purge", memory.pk, "--yes")
    assert code == 0 and "1 text has fewer than 8 characters" in out
    other.refresh_from_db()
    assert other.observation == "He said: use nx, always"
    assert run("memory", "purge", "--query", "use nx", "--short", "--yes")[0] == 0
    assert not Memory.objects.exists()


def test_a_short_word_is_previewed_and_needs_no_option():
    MemoryFactory(observation="Anna has the key")
    stays = MemoryFactory(observation="Hanna has the ladder")
    SessionFactory(response="Call Anna at 8, not Hanna")
    code, out, _ = run("memory", "purge", "--query", "anna")
    assert code == 0 and "“Anna has the key” (memory " in out and "“Call Anna at 8, not Hanna”" in out
    assert "Sessions: task, prompt, answer" in out and "ladder" not in out
    assert run("memory", "purge", "--query", "anna", "--yes")[0] == 0
    assert list(Memory.objects.all()) == [stays]
    assert Session.objects.get().response == "Call [purged] at 8, not Hanna"


def test_ids_and_filters_do_not_go_together():
    memory = furnish()
    assert document("memory", "purge", memory.pk, "--service", "vault")[1]["error"]["code"] == "usage"
    assert document("memory", "purge", "99999")[1]["error"]["code"] == "memory_not_found"
