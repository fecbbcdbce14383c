"""`manage.py secrets scan` finds what was stored before, masks it, and leaves no byte of it."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from claudeops.features.doctor import OK, WARNING, _secrets
from claudeops.features.secret_scan import columns, scan
from memories.lifecycle.write import whole_row
from memories.models import Memory, MemoryChange, MemoryTerms
from memories.recall import keyword_index
from sessions_app.models import LogEntry, Session, Status
from sessions_app.runner.launch import folder_of
from tests.support.credentials import stored_bytes
from tests.support.factories import EventFactory, MemoryFactory, SessionFactory

TOKEN = "gh" + "p_" + "a1B2c3D4e" * 4
MASK = "[secret: GitHub token]"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_data_folder(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path


def unmasked(model, pk, **values):
    """Write past the model's fields, as an earlier version did."""
    names = ", ".join(f"{name} = %s" for name in values)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {model._meta.db_table} SET {names} WHERE id = %s", [*values.values(), pk])


@pytest.fixture
def stored_before():
    """A memory, its history, an event, a log entry, a session with a raw log and a running one, all unmasked."""
    memory = MemoryFactory(observation="x", service="forge")
    unmasked(Memory, memory.pk, observation=f"The deploy job uses {TOKEN}")
    keyword_index.catch_up()
    change = MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="created", at=timezone.now())
    unmasked(MemoryChange, change.pk, after=json.dumps({"observation": f"uses {TOKEN}"}), reason=f"it said {TOKEN}")
    session = SessionFactory()
    unmasked(Session, session.pk, task=f"Use {TOKEN}", structured=json.dumps({"events": [{"message": TOKEN}]}))
    event = EventFactory(session=session)
    unmasked(type(event), event.pk, message=f"Found {TOKEN}")
    LogEntry.objects.create(session=session, seq=1, at=timezone.now(), kind="text", text=f"curl -H {TOKEN}", offset=0)
    folder = folder_of(session)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stdout-1.jsonl").write_text(json.dumps({"type": "x", "text": f"said {TOKEN}"}) + "\n")
    (folder / "stderr.log").write_text(f"fatal: {TOKEN}\n")
    return session


def places_of_token() -> list[str]:
    return [place for place, data in stored_bytes().items() if TOKEN.encode() in data or TOKEN.lower().encode() in data]


def test_a_dry_run_counts_and_changes_nothing(stored_before, capsys):
    before = stored_bytes()
    with pytest.raises(SystemExit) as ended:
        call_command("secrets", "scan", "--json")
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    answer = json.loads(printed)["result"]
    assert answer["found"] == answer["left"] == 9 and answer["kinds"] == {"GitHub token": 9}
    tables = {"memories.observation", "memory_changes.after", "memory_changes.reason", "sessions.task"}
    tables |= {"sessions.structured", "events.message", "session_log_entries.text", "sessions/**/stderr.log"}
    assert tables <= set(answer["places"]) | {"sessions/**/stderr.log"}
    assert TOKEN not in printed
    after = stored_bytes()
    assert [
        place
        for place in before
        if not place.startswith("telemetry_") and "sqlite3" not in place and before[place] != after[place]
    ] == []
    assert TOKEN in Memory.objects.get().observation
    finding = _secrets()
    assert (finding.level, "found, " in finding.text) == (WARNING, True)


def test_masking_leaves_no_byte_and_the_index_in_step(stored_before, capsys):
    assert places_of_token()
    call_command("secrets", "scan", "--mask")
    assert TOKEN not in capsys.readouterr().out
    if connection.vendor == "sqlite":  # PostgreSQL's own files keep old versions of rows until they are written again
        assert places_of_token() == []
    memory = Memory.objects.get()
    assert memory.observation == f"The deploy job uses {MASK}"
    assert not any("a1b2" in terms.terms for terms in MemoryTerms.objects.all())
    assert MemoryChange.objects.get().after == {"observation": f"uses {MASK}"}
    assert Session.objects.get().structured == {"events": [{"message": MASK}]}
    assert LogEntry.objects.get().text == f"curl -H {MASK}"
    assert whole_row(memory)["observation"] == memory.observation
    again = scan(masking=True)
    assert (again.count, again.problems, _secrets().level) == (0, [], OK)
    call_command("secrets", "scan")


def test_files_of_a_running_session_are_left(stored_before):
    Session.objects.update(status=Status.RUNNING)
    done = scan(masking=True)
    assert done.left_count == 2 and all(place.startswith("sessions/") for place in done.left)
    assert TOKEN.encode() in (folder_of(stored_before) / "stderr.log").read_bytes()


def test_raw_logs_that_are_kept_on_purpose_are_left(stored_before, settings):
    settings.CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS = True
    assert scan(masking=True).left_count == 2


def test_every_text_column_masks_itself_or_holds_names_keys_paths_or_numbers():
    kept = {
        "django_q.Task": {"id", "name", "func", "hook", "group", "cluster"},
        "memories.AgentCapture": {"agent", "category", "form", "key", "origin"},
        "memories.AgentFile": {"agent", "enabled_by", "limits", "path", "sha256", "written_by"},
        "memories.AgentFileConflict": {"answered_by"},
        "memories.AgentFileEntry": {"left_because"},
        "memories.ApiToken": {"name", "prefix", "secret_hash", "scopes", "created_by", "revoked_by"},
        "memories.Disagreement": {"by", "service", "category"},
        "memories.Embedding": {"content_hash"},
        "memories.EmbeddingModel": {"name"},
        "memories.Memory": {"agent", "service", "category", "sequence"},
        "memories.MemoryChange": {"actor", "candidate_key"},
        "memories.MemoryChangeCount": {"name"},
        "memories.TelemetryCount": {"name"},
        "memories.TelemetryCursor": {"name"},
        "memories.Fact": {"category", "reasons", "said_gate", "source", "verdict"},
        "memories.ForgottenText": {"allowed_by", "digest"},
        "memories.GateDecision": {
            *("actor", "agent", "category", "channel", "key", "labelled_by", "model", "reasons", "said_gate"),
            *("service", "taxonomy", "verdict"),
        },
        "memories.GateThreshold": {"by", "name"},
        "memories.MaintenanceRun": {"by", "claimed_by", "undone_by"},
        "memories.MaintenanceStep": {"counts", "cursor", "name"},
        "memories.Decision": {"folder", "name", "status"},
        "memories.JournalEntry": {"action", "agent", "held", "host", "project", "tool", "uid"},
        "memories.JournalFile": {"host", "month", "problem"},
        "memories.Skill": {"host", "path"},
        "memories.MemoryFile": {"blame", "branch", "commit", "host", "sha256", "stamp"},
        "memories.MemoryFileCommit": {"sha", "agents"},
        "memories.ModelCall": {"role", "backend", "prompt_hash"},
        "memories.Project": {
            *("slug", "default_expiry", "files_folder", "files_limits", "files_pattern", "files_sections"),
            *("memory_path", "allowed_signers"),
        },
        "memories.SeenCommit": {"sha", "agents"},
        "memories.VouchedText": {"digest", "by"},
        "memories.ProjectTag": {"tag"},  # a copy of masked tags, kept by triggers
        "memories.Proposal": {"by", "commit", "decided_by", "key", "section"},
        "memories.ProposalDecision": {"by", "model", "rule"},
        "memories.Reflection": {
            *("claimed_by", "counts", "model", "observations", "prompt_hash", "shown_sha256", "target_tokens"),
        },
        "memories.Stage": {"claimed_by", "counts"},
        "memories.TelemetryRecord": {"action", "component", "key", "source"},
        "memories.Transcript": {"agent", "cli_session_id", "host", "installation", "key", "prefix_sha256"},
        "memories.TranscriptPart": {"model", "prepared_sha256", "prompt_hash", "removed"},
        "memories.Recalled": {"hits", "surface", "actor"},
        "memories.RecallMark": {"query_key"},
        "preferences.ListChoice": {"page", "columns"},
        "preferences.Preference": {"time_zone"},
        "preferences.SavedView": {"page"},
        "sessions_app.Agent": {
            *("slug", "model", "cron", "working_directory", "replay_stream", "allowed_tools", "disallowed_tools")
        },
        "sessions_app.CooldownAction": {"service", "fingerprint"},
        "sessions_app.CooldownClearance": {"service", "by"},
        "sessions_app.Event": {"service", "fingerprint", "acknowledged_by"},
        "sessions_app.EventCount": {"name"},
        "sessions_app.HookHeard": {"event", "installation"},
        "sessions_app.HookReceipt": {"agent", "cli_session_id", "event", "part", "sha256"},
        "sessions_app.InjectionReceipt": {"sha256", "counts"},
        "sessions_app.PromptReceipt": {"cli_session_id", "prompt", "transcript_path"},  # of the prompt its keyed hash
        "sessions_app.Purge": {"by", "chosen", "receipt"},
        "sessions_app.ServiceCheck": {"service"},
        "sessions_app.Session": {
            *(
                "model",
                "cli_session_id",
                "requested_by",
                "replay_stream",
                "log_file",
                "import_key",
                "alert_key",
                "host",
            ),
            "stop_requested_by",
            "prompt_sha256",
            "usage",
            "stats",
        },
        "sessions_app.SourceRule": {"by", "tool"},
        "sessions_app.AgentCount": {"name"},
        "sessions_app.SessionCount": {"name"},
        "sessions_app.TranscriptFolder": {"host", "installation", "path", "project_path"},
        "sessions_app.WorkerHeartbeat": {"host", "cluster"},
        "sessions_app.WorkerRun": {"host", "queues"},
    }
    found = {}
    for model, fields in columns.text_columns():
        names = {field.name for field in fields if not columns.can_be_masked(model, field)}
        if names:
            found[model._meta.label] = names
    assert found == kept
