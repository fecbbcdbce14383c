"""`manage.py doctor`: each thing that can be wrong is said in plain words, and the exit code tells."""

from __future__ import annotations

import json
import platform
import stat
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import django
import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from claudeops.features import doctor
from claudeops.features.backups import folder
from claudeops.features.doctor import ERROR, OK, WARNING, Finding, examine
from claudeops.features.overview import health
from claudeops.lib.locks import file_lock
from claudeops.workers import schedules
from memories.files import watch
from memories.models import AgentFile, EmbeddingModel, FileState, ModelState
from sessions_app.models import Status, TranscriptFolder, WorkerHeartbeat
from sessions_app.queue import tasks
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory, TranscriptFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def signed_in_cli(settings, tmp_path, monkeypatch):
    """A host with a CLI that says its version, and a key."""
    binary = tmp_path / "claude"
    binary.write_text(f"#!{sys.executable}\nprint('9.8.7 (Claude Code)')\n")
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    settings.CLAUDEOPS_CLAUDE_BIN = str(binary)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    return binary


@pytest.fixture
def in_step():
    """Set up running workers and synced schedules."""
    schedules.sync_schedules(AT)
    for cluster in ("default", "sessions"):
        WorkerHeartbeat.objects.create(host="here", cluster=cluster, pid=7, beat_at=AT - timedelta(seconds=4))


def found(subject: str, at: datetime = AT) -> list[Finding]:
    return [finding for finding in examine(at).findings if finding.subject == subject]


def backup_finding() -> Finding:
    return doctor._backup(AT)


def run(capsys, **options) -> tuple[int, str]:
    code = 0
    try:
        call_command("doctor", **options)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return code, capsys.readouterr().out


def test_a_house_where_all_is_well(in_step):
    result = examine(AT)
    assert result.healthy
    assert {finding.level for finding in result.findings} == {OK}


def test_it_knows_the_versions_of_what_runs_here(signed_in_cli):
    versions = examine(AT).versions
    assert versions["python"] == platform.python_version()
    assert versions["django"] == django.get_version()
    assert versions["claude"] == f"9.8.7 ({signed_in_cli})"
    assert versions["sqlite" if connection.vendor == "sqlite" else "postgresql"][0].isdigit()


@pytest.mark.parametrize("body", ["raise SystemExit(1)", "pass", "print()"])
def test_a_cli_that_does_not_say_its_version_does_not_answer(signed_in_cli, body):
    signed_in_cli.write_text(f"#!{sys.executable}\n{body}\n")
    assert examine(AT).versions["claude"] == f"does not answer ({signed_in_cli})"


def test_a_cli_that_is_no_program_does_not_answer(signed_in_cli):
    signed_in_cli.write_bytes(b"\x7fELF rubbish")
    assert "does not answer" in examine(AT).versions["claude"]


def test_what_the_checks_find_is_said_with_its_hint(settings, monkeypatch):
    settings.CLAUDEOPS_CLAUDE_BIN = "claude-that-is-not-there"
    monkeypatch.setenv("CLAUDEOPS_WORKRES", "3")
    levels = {finding.subject: finding.level for finding in examine(AT).findings}
    assert levels["sessions_app.W001"] == levels["claudeops.W001"] == WARNING
    assert found("claudeops.W001")[0].hint == "Did you mean CLAUDEOPS_WORKERS?"
    assert not found("checks")


def test_a_data_folder_that_cannot_be_written_is_wrong(settings, tmp_path):
    (tmp_path / "file").write_text("")
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "file" / "data"
    result = examine(AT)
    assert not result.healthy
    assert [f.level for f in result.findings if f.subject == "claudeops.E001"] == [ERROR]
    assert not any(f.subject == "data folder" for f in result.findings)


def test_little_space_is_a_warning(monkeypatch):
    monkeypatch.setattr(doctor, "LITTLE_SPACE", 10**18)
    assert found("data folder")[0].level == WARNING


class TestTheBackup:
    @pytest.fixture(autouse=True)
    def its_folder(self, settings, tmp_path, monkeypatch):
        settings.CLAUDEOPS_BACKUP_DIR = tmp_path / "backups"
        settings.CLAUDEOPS_BACKUP_KEEP = 7
        monkeypatch.setattr(folder, "is_daily_on", lambda: settings.CLAUDEOPS_BACKUP_KEEP > 0)
        return tmp_path / "backups"

    def test_none_is_a_warning_where_one_is_made_each_day(self, its_folder, settings):
        assert backup_finding() == Finding(WARNING, "backup", f"none in {its_folder}", health.BACKUP)
        settings.CLAUDEOPS_BACKUP_KEEP = 0
        assert backup_finding().level == OK and "`manage.py backup` makes one" in backup_finding().hint

    @pytest.mark.parametrize(
        ("name", "level", "said"),
        [
            ("20260310T000000Z-daily", OK, "the last one was made 12 h ago (2026-03-10 00:00 UTC)"),
            ("20260307T000000Z", WARNING, "the last one was made 3 d ago (2026-03-07 00:00 UTC)"),
            ("20260310T000000Z.partial", WARNING, "none in"),
            ("20270101T000000Z", WARNING, "none in"),  # the clock was wrong
            ("20261399T000000Z", WARNING, "none in"),
        ],
    )
    def test_how_old_the_last_complete_one_is(self, its_folder, name, level, said):
        (its_folder / name).mkdir(parents=True)
        (its_folder / name / "manifest.json").touch()
        (its_folder / "20260310T110000Z").mkdir()  # without a manifest
        assert backup_finding().level == level and backup_finding().text.startswith(said)


class TestTheDatabase:
    def test_one_that_does_not_answer_is_wrong_and_ends_nothing(self, monkeypatch):
        def broken(*args, **kwargs):
            raise OperationalError("no such host")

        monkeypatch.setattr(connection, "cursor", broken)
        result = examine(AT)
        assert [f.text for f in result.findings if f.level == ERROR] == ["no answer: no such host"]
        assert not any(f.subject == "queue" for f in result.findings)

    def test_a_migration_that_is_not_applied_is_wrong(self):
        MigrationRecorder.Migration.objects.filter(app="memories").order_by("-id")[:1].get().delete()
        finding = found("database")[0]
        assert (finding.level, finding.hint) == (ERROR, "Run: manage.py migrate")
        assert finding.text.endswith("1 migration is not applied.")


class TestWorkers:
    def test_a_queue_nobody_serves_is_an_error(self):
        assert [f.level for f in found("worker default") + found("worker sessions")] == [ERROR, ERROR]
        assert not examine(AT).healthy

    def test_who_serves_it_and_when_it_was_last_heard_of(self, in_step):
        assert found("worker default") == [Finding(OK, "worker default", "here (pid 7, 4 s)")]

    def test_workers_that_fell_silent_are_named_once_a_host(self, in_step):
        for host, pid, hours in (("gone", 9, 2), ("rack", 5, 3), ("rack", 6, 4)):
            for cluster in ("default", "sessions"):
                beat = AT - timedelta(hours=hours)
                WorkerHeartbeat.objects.create(host=host, cluster=cluster, pid=pid, beat_at=beat)
        assert [f.text for f in found("silent worker")] == [
            "gone (pid 9) has sent no heartbeat for 2 h",
            "rack (2 processes) has sent no heartbeat for 3 h",
        ]


class TestTheQueue:
    def test_how_many_run_and_wait_and_why(self, in_step):
        for _ in range(2):
            SessionFactory(status=Status.QUEUED, queued_at=AT - timedelta(minutes=3), hold_reason="It is Sunday.")
        SessionFactory(status=Status.QUEUED, queued_at=AT - timedelta(minutes=2))
        SessionFactory(status=Status.QUEUED, queued_at=AT - timedelta(seconds=50))
        assert [(f.level, f.text) for f in found("queue")] == [
            (OK, "0 sessions running, 4 queued, the oldest for 3 min"),
            (WARNING, "2 sessions wait for up to 3 min: It is Sunday."),
            (WARNING, "one session waits for up to 2 min: A worker takes it within a minute."),
        ]

    def test_tasks_that_nobody_takes_are_a_warning_wakeups_of_sessions_are_not(self):
        tasks.send(tasks.REAP, host="here")
        tasks.send(tasks.RUN, 1, cluster=tasks.SESSIONS)
        OrmQ.objects.update(lock=AT - timedelta(minutes=6))
        assert {f.text: f.level for f in found("tasks")} == {
            "1 tasks waiting in the queue default@here, the oldest for 6 min": WARNING,
            "1 tasks waiting in the queue sessions, the oldest for 6 min": OK,
        }

    def test_a_session_nobody_follows_is_a_warning(self):
        SessionFactory(status=Status.RUNNING, heartbeat_at=AT - timedelta(minutes=2))
        assert found("sessions")[0].text == "running sessions without a worker: 1"

    def test_a_day_whose_budget_is_spent_is_a_warning(self, settings):
        settings.CLAUDEOPS_DAILY_BUDGET_USD = 5.0
        SessionFactory(ended_at=AT, cost_usd=Decimal("5.25"))
        finding = found("budget")[0]
        assert (finding.level, finding.text) == (WARNING, "$5.25 of $5.00 spent since 00:00 UTC")
        settings.CLAUDEOPS_DAILY_BUDGET_USD = 0
        assert not found("budget")


class TestAgents:
    def test_who_runs_next(self):
        AgentFactory(slug="watch", schedule_kind="interval", next_run_at=AT + timedelta(minutes=5))
        AgentFactory(slug="night", schedule_kind="cron", cron="0 3 * * *", next_run_at=AT + timedelta(hours=15))
        assert found("agents")[0].text == "2 agents scheduled, next watch at 12:05:00 UTC"

    def test_a_cron_that_never_comes_is_a_warning(self):
        AgentFactory(slug="broken", schedule_kind="cron", cron="0 0 31 2 *")
        assert found("agent broken")[0].level == WARNING


class TestSchedules:
    def test_some_that_are_not_in_step_are_a_warning(self, in_step):
        Schedule.objects.get(name="claudeops:sweep").delete()
        Schedule.objects.create(name="claudeops:old", func="gone", next_run=AT)
        assert found("schedules")[0].text == "out of sync with the code: old, sweep"

    def test_some_that_nobody_looks_at_are_a_warning(self, in_step):
        finding = found("schedules", AT + timedelta(minutes=8))[0]
        assert (finding.level, finding.text) == (
            WARNING,
            "overdue for more than five minutes: "
            "embed, export, maintain, memory_files, observe, reap, recall, task_items, tick",
        )


class TestTranscripts:
    def test_that_they_are_not_observed_is_said(self):
        assert found("transcripts")[0].text == "sessions are not observed (CLAUDEOPS_OBSERVE)"

    def test_the_last_one_and_each_folder_are_told(self, settings):
        settings.CLAUDEOPS_OBSERVE = True
        assert found("transcripts")[0].text == "none was seen yet"
        TranscriptFactory(seen_at=AT - timedelta(minutes=3), arrived_by="sweep", installation="laptop")
        seen = {
            "swept_at": AT - timedelta(minutes=2),
            "last_at": AT - timedelta(hours=1),
            "last_path": "/srv/t/a.jsonl",
        }
        folder = TranscriptFolder.objects.create(host="here", path="/srv/t", project_path="/srv/shop", **seen)
        assert "named by the sweep of laptop" in found("transcripts")[0].text
        subject = "folder /srv/t on here (sessions in /srv/shop)"
        (finding,) = found(subject)
        assert finding.level == OK and "a.jsonl" in finding.text
        folder.problem = "The folder cannot be read."
        folder.save()
        assert (found(subject)[0].level, found(subject)[0].text) == (WARNING, "The folder cannot be read.")

    def test_those_that_were_rewritten_are_a_warning(self, settings):
        settings.CLAUDEOPS_OBSERVE = True
        TranscriptFactory(seen_at=AT, problem="Not observed any further.")
        assert found("transcripts")[0].level == WARNING


class TestTheCommand:
    def test_a_queue_without_a_worker_makes_the_exit_code_one(self, capsys):
        code, text = run(capsys)
        assert code == 1
        assert "Python " in text
        assert "ERROR    worker default" in text
        assert "Start `manage.py runworker` (or `up`)." in text
        assert "Errors: 2. Warnings: " in text

    def test_warnings_leave_the_exit_code_zero(self, capsys, in_step):
        WorkerHeartbeat.objects.update(beat_at=timezone.now())
        Schedule.objects.update(next_run=timezone.now())
        SessionFactory(status=Status.QUEUED, queued_at=timezone.now() - timedelta(minutes=5))
        code, text = run(capsys)
        assert code == 0
        assert "warning  queue" in text
        assert "Errors: 0. Warnings: " in text

    def test_an_error_makes_it_one(self, capsys, monkeypatch, settings):
        monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")
        monkeypatch.setitem(settings.DATABASES["default"], "OPTIONS", {})
        code, text = run(capsys)
        assert code == 1
        assert "ERROR    claudeops.E002" in text

    def test_all_is_well(self, capsys, in_step):
        WorkerHeartbeat.objects.update(beat_at=timezone.now())
        schedules.sync_schedules()
        Schedule.objects.update(next_run=timezone.now())
        code, text = run(capsys)
        assert code == 0
        assert text.strip().endswith("No problems found.")

    def test_as_json_it_is_one_document(self, capsys):
        code, text = run(capsys, json=True)
        document = json.loads(text)
        assert code == 1
        assert (document["command"], document["result"]["healthy"]) == ("doctor", False)
        assert {"level", "subject", "text", "hint"} == set(document["result"]["findings"][0])
        assert document["next_actions"] == [{"command": "manage.py up", "description": "start everything"}]


class TestMeaning:
    def test_switched_off_it_is_said_and_nothing_is_wrong(self):
        (finding,) = found("semantic search")
        assert (finding.level, finding.text) == (
            OK,
            "semantic search is off: it is switched off (CLAUDEOPS_EMBEDDINGS)",
        )

    def test_while_it_is_off_a_warning_says_why(self, settings, tmp_path):
        settings.CLAUDEOPS_EMBEDDINGS, settings.CLAUDEOPS_MODELS_DIR = "local", tmp_path
        (finding,) = found("semantic search")
        assert finding.level == WARNING
        assert finding.text == "semantic search is off: the model all-MiniLM-L6-v2 is not installed"
        assert "keywords" in finding.hint

    def test_while_it_is_on_it_says_how_many_wait(self, settings):
        settings.CLAUDEOPS_EMBEDDINGS = "endpoint"
        EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4, state=ModelState.ACTIVE)
        MemoryFactory()
        (finding,) = found("semantic search")
        assert (finding.level, finding.text) == (OK, "on; 1 memories wait for their vector")


def test_it_says_how_far_memories_are_trusted_and_how_many_wait(settings):
    MemoryFactory(provisional="credentials", exposure="outside")
    MemoryFactory(verdict="hold")
    (finding,) = found("trust")
    assert finding.text == "guarded; 1 memories held for review, 1 unconfirmed"
    assert "status=waiting" in finding.hint
    settings.CLAUDEOPS_TRUST = "open"
    assert found("trust")[0].text == "open; 1 memories held for review, 0 unconfirmed"


def test_an_agent_file_that_needs_a_person_is_said_with_what_to_do(in_step):
    project = ProjectFactory(slug="shop")
    AgentFile.objects.create(project=project, agent="engineer", state=FileState.OK)
    assert found("agent files") == [Finding(OK, "agent files", "1 on, none needs a person")]
    AgentFile.objects.update(state=FileState.UNWRITABLE, problem="/srv/shop: Permission denied.")
    (one,) = found("agent files")
    assert (one.level, one.text) == (
        WARNING,
        "The memory file of engineer in shop cannot be written: /srv/shop: Permission denied",
    )
    assert "the next sync writes it" in one.hint
    for number in range(doctor.MOST_FILES):
        AgentFile.objects.create(project=project, agent=f"agent_{number}", state=FileState.FULL)
    assert len(found("agent files")) == doctor.MOST_FILES + 1
    assert found("agent files")[-1].text == "others need a person, too"


def test_files_that_nobody_watches_are_said(in_step, settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    ProjectFactory(path="/srv/shop")
    (one,) = found("agent files")
    assert (one.level, one.text) == (
        WARNING,
        "no worker of this host watches them: what a person saves is read within five minutes, not at once",
    )
    with file_lock(watch.lock_path()):
        assert found("agent files") == [Finding(OK, "agent files", "0 on, none needs a person")]
