"""`manage.py session`."""

from __future__ import annotations

import hashlib
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from sessions_app.models import Event, LogEntry, Runner, Session, Status, Trigger
from tests.support import commands
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory
from tests.support.processes import manage, wait_for
from tests.support.streams import init, result, text, tool_result, tool_use, write

STREAM = Path(__file__).parents[2] / "data" / "streams" / "stream.jsonl"
pytestmark = pytest.mark.django_db(transaction=True)


run, document = partial(commands.run, "session"), partial(commands.document, "session")


@pytest.fixture
def stream(tmp_path):
    lines = [
        init(),
        text("Looking.\n[EVENT:info:db] up\n[MEMORY:timing:db] Takes 20 seconds to start"),
        tool_use("docker ps"),
        tool_result("db  up 3 days\x1b[31m"),
        result(),
    ]
    return write(tmp_path / "stream.jsonl", *lines)


def test_run_shows_the_log_and_says_what_came_of_it(stream):
    code, out, _ = run("run", "--stream", stream)
    assert code == 0
    assert "Looking." in out
    assert "  > Bash: docker ps" in out
    assert "  < db  up 3 days" in out
    assert "\x1b" not in out
    session = Session.objects.get()
    assert f"Session {session.pk}: completed." in out
    assert "events 1" in out
    assert "memories created 1" in out


def test_run_with_json_prints_one_document_and_nothing_else(stream):
    code, found = document("run", "--stream", stream)
    assert code == 0
    assert found["ok"] is True
    assert found["result"]["status"] == "completed"
    assert found["result"]["memories"][0]["observation"] == "Takes 20 seconds to start"
    assert found["next_actions"][0]["command"].startswith("manage.py session show")


def test_a_run_that_failed_exits_with_1(tmp_path):
    code, out, _ = run("run", "--stream", write(tmp_path / "s", init(), result("API Error", is_error=True)))
    assert code == 1
    assert "failed. The API or the CLI reported an error" in out


def test_run_with_queue_leaves_it_to_the_workers(stream):
    code, out, _ = run("run", "--stream", stream, "--queue", "--alert", "jellyfin is down")
    session = Session.objects.get()
    assert code == 0
    assert out.startswith(f"Session {session.pk} is queued.")
    assert (session.status, session.trigger, session.task) == (Status.QUEUED, Trigger.ALERT, "jellyfin is down")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "nobody"], "There is no agent 'nobody'."),
        (["--project", "none"], "There is no project 'none'."),
        (["--runner", "replay"], "A replay needs a recorded stream."),
        (["--prompt", "a", "--alert", "b"], "--prompt and --alert exclude each other."),
    ],
)
def test_what_cannot_be_run_is_named(arguments, words):
    code, _, err = run("run", *arguments)
    assert code == 1
    assert words in err
    assert Session.objects.count() == 0


def test_wrong_usage_exits_with_2():
    process = manage("session", "run", "--tier", "9")
    _, err = process.communicate()
    assert process.returncode == 2
    assert "invalid choice" in err


def test_an_unknown_agent_says_which_there_are():
    AgentFactory(slug="watcher")
    assert "Known agents: watcher." in run("run", "--agent", "nobody")[2]


def test_import_tells_of_each_file(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    code, out, err = run("import", STREAM, STREAM, tmp_path / "notes.txt")
    assert code == 1
    assert "imported as session" in out
    assert "already imported as session" in out
    assert "notes.txt contains no line of stream-json" in err
    assert Session.objects.count() == 1


def test_import_as_a_document():
    code, found = document("import", STREAM)
    assert code == 0
    assert found["result"]["imported"][0]["outcome"] == "imported"


def test_import_says_the_format_what_dated_it_and_what_was_not_understood(tmp_path):
    path = write(tmp_path / "log", init(), text("[EVENT:info:db] up"), "npm warn\n", result())
    os.utime(path, (1_740_000_000, 1_740_000_000))
    code, out, _ = run("import", path)
    assert code == 0
    assert "(4 lines, completed); stream-json, dated by the file's modification time; 1 of 4 lines (25.0%)" in out
    assert Event.objects.get().created_at.year == 2025
    found = document("import", path, "--at", "2024-05-01T12:00:00+02:00")[1]["result"]["imported"][0]
    assert (found["outcome"], found["dated_by"]) == ("unchanged", "--at")
    assert (found["format"], found["lines_of_file"], found["lines_not_understood"]) == ("stream-json", 4, 1)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("yesterday", "is not an ISO 8601 time"),
        ("2026-05-01T12:00:00", "has no time zone"),
        ("2026-05-01", "has no time zone"),
        ("9999-01-01T00:00:00Z", "is in the future"),
        ("0001-01-01T00:00:00+14:00", "is in the future, or before 2000"),
        ("1970-01-01T00:00:00Z", "or before 2000"),
    ],
)
def test_a_wrong_time_of_an_import_is_wrong_usage(when, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        call_command("session", "import", str(STREAM), "--at", when)
    assert words in capsys.readouterr().err
    assert Session.objects.count() == 0


def test_import_refuses_a_file_of_other_lines_unless_forced(tmp_path):
    path = write(tmp_path / "notes.txt", init(), *["hello\n"] * 3)
    code, _, err = run("import", path)
    assert code == 1
    assert "notes.txt: 3 of 4 lines (75%) were not understood." in err
    assert "--force" in err
    assert run("import", path, "--force")[0] == 0


def test_import_with_every_file_failed_is_not_ok(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    code, found = document("import", tmp_path / "notes.txt", tmp_path / "none")
    assert (code, found["ok"]) == (1, False)
    assert "notes.txt contains no line" in found["error"]["message"]
    assert "No such file" in found["error"]["message"]
    assert [item["file"] for item in found["result"]["failed"]] == [str(tmp_path / n) for n in ("notes.txt", "none")]


def test_import_with_some_files_failed_says_which(tmp_path):
    code, found = document("import", STREAM, tmp_path / "none")
    assert (code, found["ok"]) == (1, True)
    assert [item["file"] for item in found["result"]["imported"]] == [str(STREAM)]
    assert [item["file"] for item in found["result"]["failed"]] == [str(tmp_path / "none")]


def test_list_shows_the_latest_first_and_filters():
    agent = AgentFactory(slug="watcher")
    SessionFactory(agent=agent, summary="All well.")
    SessionFactory(status=Status.FAILED, status_reason="The API is down.")
    code, out, _ = run("list")
    assert code == 0
    assert out.index("The API is down.") < out.index("All well.")
    assert "All well." not in run("list", "--status", "failed")[1]
    assert "The API is down." not in run("list", "--agent", "watcher")[1]
    assert len(document("list", "--limit", "1")[1]["result"]) == 1


def test_list_says_why_a_session_failed_also_when_it_left_a_summary():
    SessionFactory(status=Status.FAILED, status_reason="The API is down.", summary="All well.")
    SessionFactory(status=Status.COMPLETED, status_reason="1 tool call was denied.", summary="Found nothing.")
    out = run("list")[1]
    assert "The API is down." in out
    assert "All well." not in out
    assert "Found nothing." in out


def test_list_says_what_to_do_when_there_is_none():
    assert "manage.py session run" in run("list")[1]


def test_show_tells_the_whole_story(stream):
    run("run", "--stream", stream)
    session = Session.objects.get()
    code, out, _ = run("show", session.pk, "--log", "--prompt")
    assert code == 0
    for words in (
        "completed",
        "memory",
        "event info db: up",
        "Injected: 0 memories",
        "Read: ",
        "## Memory Recording",
        "Looking.",
    ):
        assert words in out
    found = document("show", session.pk, "--log")[1]["result"]
    assert len(found["log"]) == LogEntry.objects.count()
    assert found["receipt"]["tokens"] == 0


def test_show_of_a_session_that_is_not_there():
    code, found = document("show", 99)
    assert code == 1
    assert found["ok"] is False
    assert found["error"] == {"code": "session_not_found", "message": "There is no session 99."}
    assert found["fix"]


def test_stop_ends_a_queued_session_at_once(stream):
    run("run", "--stream", stream, "--queue")
    session = Session.objects.get()
    code, out, _ = run("stop", session.pk)
    session.refresh_from_db()
    assert (code, session.status) == (0, Status.STOPPED)
    assert out.strip()


def test_stop_of_an_ended_session_is_refused():
    code, _, err = run("stop", SessionFactory().pk)
    assert code == 1
    assert err.startswith("Error: ")


def test_reap_says_when_all_is_well():
    assert run("reap")[1].strip() == "Every running session has a worker."


@pytest.mark.processes
def test_ctrl_c_stops_the_session_it_runs(tmp_path):
    lines = [text(f"[EVENT:info] number {n}", seconds=n * 0.1) for n in range(300)]
    path = write(tmp_path / "slow", init(), *lines, result())
    process = manage("session", "run", "--stream", str(path), more={"CLAUDEOPS_REPLAY_SPEED": "1"})
    wait_for(lambda: Event.objects.exists(), 60)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    session = Session.objects.get()
    assert process.returncode == 1
    assert session.status == Status.STOPPED
    assert "stopped. Stopped by" in out


@pytest.mark.processes
def test_run_waits_for_the_agents_running_session_and_says_so(tmp_path, stream):
    agent = AgentFactory(slug="watcher", runner=Runner.REPLAY, replay_stream=str(stream))
    running = SessionFactory(agent=agent, status=Status.RUNNING)
    process = manage("session", "run", "--agent", "watcher")
    assert "has to wait: " in process.stdout.readline()
    Session.objects.filter(pk=running.pk).update(status=Status.COMPLETED)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "completed." in out


def test_compose_prints_the_prompt_and_stores_nothing():
    project = ProjectFactory(slug="shop", path="/srv/shop")
    MemoryFactory(
        taxonomy="project",
        project=project,
        service=None,
        category="pattern",
        observation="Uses cookies",
        tags=["login"],
    )
    arguments = ("--project", "shop", "--task", "Fix the login.", "--title", "Login", "--write-scope", "src/**")
    _, text, _ = run("compose", *arguments)
    assert "## Task\n\n**Login**\n\nFix the login.\n" in text
    assert "- [pattern] Uses cookies [m" in text
    composed = document("compose", *arguments)[1]["result"]
    assert composed["prompt"].rstrip("\n") == text.rstrip("\n")
    assert composed["sha256"] == hashlib.sha256(composed["prompt"].encode()).hexdigest()
    assert composed["receipt"]["included"][0]["score"]["matched"] == ["login"]
    assert [section["title"] for section in composed["sections"]][:3] == ["Role", "Task", "Workspace"]
    assert not Session.objects.exists()


def test_compose_refuses_a_bad_glob_with_its_field():
    code, answer = document("compose", "--task", "x", "--write-scope", "/etc/**")
    assert (code, answer["error"]["code"]) == (1, "invalid_brief")
    assert answer["error"]["message"].startswith("write_scope: ")


def test_retry_and_continue_make_a_linked_session():
    old = SessionFactory(status=Status.FAILED, cli_session_id="0b8d", started_at=timezone.now(), task="Look.")
    for verb in ("retry", "continue"):
        answer = document(verb, old.pk, "--note", "Look again.")[1]["result"]
        made = Session.objects.get(pk=answer["id"])
        assert (made.parent, made.follows_as, made.brief["note"]) == (old, verb, "Look again.")


def test_a_replay_cannot_be_continued():
    old = SessionFactory(status=Status.FAILED, runner="replay", replay_stream="a.jsonl", started_at=timezone.now())
    code, answer = document("continue", old.pk)
    assert code == 1
    assert "recorded stream" in answer["error"]["message"]
    assert answer["fix"] == "Retry it instead."
