"""The sweep takes in what no hook named, once, and leaves alone what is not its."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import ArrivedBy, Transcript, TranscriptPart
from sessions_app import tasks
from sessions_app.models import Session, TranscriptFolder, Trigger
from sessions_app.transcripts.arrivals import see
from sessions_app.transcripts.sweep import sweep
from tests.support.factories import ProjectFactory, SessionFactory
from tests.support.transcripts import SESSION, says, typed, write

pytestmark = pytest.mark.django_db

LINES = [typed("Never restart the database by day"), says("I will wait")]
NOW = timezone.now()


def ids(count):
    return [f"00000000-0000-4000-8000-{number:012d}" for number in range(count)]


def aged(path, minutes):
    then = (NOW - timedelta(minutes=minutes)).timestamp()
    os.utime(path, (then, then))
    return path


@pytest.fixture
def folder(settings, tmp_path):
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    return TranscriptFolder.objects.create(
        host=settings.CLAUDEOPS_HOST,
        path=str(tmp_path / ".claude" / "projects"),
        installation="laptop",
        since=NOW - timedelta(days=1),
    )


def swept(minutes=0):
    """Sweep `minutes` from now; a folder that was swept just now is left alone."""
    TranscriptFolder.objects.update(swept_at=None)
    return sweep(at=NOW + timedelta(minutes=minutes))


def test_what_was_missed_is_taken_in_once(folder, tmp_path):
    path = aged(write(tmp_path, *LINES), 31)
    assert swept().taken == 1
    found = Transcript.objects.get()
    assert (found.arrived_by, found.installation, found.ended_at) == ("sweep", "laptop", None)
    folder.refresh_from_db()
    assert (folder.last_path, folder.last_at, folder.problem) == (str(path), NOW, "")
    assert (swept(1).taken, see(path, arrived_by=ArrivedBy.HOOK), TranscriptPart.objects.count()) == (0, found, 1)


def test_a_session_that_goes_on_is_left_until_it_is_silent(folder, tmp_path):
    aged(write(tmp_path, *LINES), 29)
    assert swept().taken == 0
    assert swept(2).taken == 1
    aged(write(tmp_path, *LINES, says("More")), 0)
    assert swept(3).taken == 0
    assert swept(31).taken == 1


def test_what_a_session_wrote_after_its_end_does_not_wait(folder, tmp_path):
    see(aged(write(tmp_path, *LINES), 5), arrived_by=ArrivedBy.HOOK, ended=True)
    aged(write(tmp_path, *LINES, says("Good bye")), 0)
    assert swept().taken == 1
    assert TranscriptPart.objects.count() == 2


def test_what_is_older_than_the_installation_is_not_swept(folder, tmp_path):
    aged(write(tmp_path, *LINES), 60 * 25)
    assert (swept().files, Transcript.objects.count()) == (0, 0)


def test_only_sessions_of_the_folders_project_are_swept(folder, tmp_path):
    aged(write(tmp_path, *LINES), 60)
    for project_path in ("/srv/sho", "/srv/shop/deep", "/srv/other"):
        folder.project_path = project_path
        folder.save()
        assert swept().taken == 0
    folder.project_path = "/srv"
    folder.save()
    assert swept().taken == 1


def test_our_own_sessions_are_not_taken_twice(folder, tmp_path):
    SessionFactory(cli_session_id=SESSION)
    aged(write(tmp_path, *LINES), 60)
    assert (swept().taken, Transcript.objects.count()) == (0, 0)
    Session.objects.update(trigger=Trigger.IMPORT)
    assert swept().taken == 1


def test_excluded_sessions_are_not_read(folder, tmp_path, settings):
    aged(write(tmp_path, *LINES), 60)
    settings.CLAUDEOPS_OBSERVE_EXCLUDE = ["/srv/shop"]
    assert (swept().taken, Transcript.objects.count()) == (0, 0)


def test_a_project_that_is_not_observed_is_left_out(folder, tmp_path):
    ProjectFactory(path="/srv/shop", observed=False)
    aged(write(tmp_path, *LINES), 60)
    assert (swept().taken, Transcript.objects.count()) == (0, 0)


def test_subagents_and_links_are_left_alone(folder, tmp_path):
    path = aged(write(tmp_path, *LINES), 60)
    inside = path.parent / SESSION / "subagents"
    inside.mkdir(parents=True)
    aged(write(tmp_path, *LINES, session=ids(1)[0]), 60).rename(inside / "agent-1.jsonl")
    (path.parent / "link.jsonl").symlink_to(inside / "agent-1.jsonl")
    aged(write(tmp_path, *LINES, session=ids(2)[1]), 60).rename(path.parent / "agent-2.jsonl")
    assert (swept().files, Transcript.objects.count()) == (1, 1)


def test_a_transcript_that_was_rewritten_is_a_problem_of_its_folder_until_the_next_sweep(folder, tmp_path):
    aged(write(tmp_path, *LINES), 60)
    swept()
    aged(write(tmp_path, *reversed(LINES)), 50)
    assert swept().unread == 1
    folder.refresh_from_db()
    assert "was changed" in folder.problem and SESSION in folder.problem
    assert swept().unread == 0  # the row of the transcript keeps it
    assert Transcript.objects.get().problem


def test_a_copy_with_other_content_is_no_problem_of_the_folder(folder, tmp_path):
    path = aged(write(tmp_path, *LINES), 60)
    swept()
    copy = path.parent / "copy.jsonl"
    copy.write_text("".join(reversed(LINES)))
    aged(copy, 50)
    assert (swept().taken, TranscriptPart.objects.count()) == (0, 1)
    folder.refresh_from_db()
    assert folder.problem == ""


def test_sessions_that_are_left_out_by_their_folder_cost_two_queries_a_folder(
    folder, tmp_path, django_assert_num_queries
):
    ProjectFactory(path="/srv/shop", observed=False)
    for number in ids(20):
        aged(write(tmp_path, *LINES, session=number), 60)
    TranscriptFolder.objects.update(swept_at=None)
    with django_assert_num_queries(9):
        assert sweep(at=NOW).taken == 0


def test_a_folder_that_is_gone_is_named_and_the_others_are_swept(folder, tmp_path, settings):
    TranscriptFolder.objects.create(host=settings.CLAUDEOPS_HOST, path=str(tmp_path / "gone"))
    TranscriptFolder.objects.create(host="elsewhere", path=folder.path)
    aged(write(tmp_path, *LINES), 60)
    assert swept().taken == 1
    gone = TranscriptFolder.objects.get(path__endswith="gone")
    assert gone.problem == "The folder cannot be read: No such file or directory."
    assert TranscriptFolder.objects.get(host="elsewhere").swept_at is None


def test_folders_of_the_setting_are_swept_from_when_they_are_named(tmp_path, settings):
    settings.CLAUDEOPS_TRANSCRIPT_FOLDERS = [str(tmp_path / ".claude" / "projects")]
    aged(write(tmp_path, *LINES), 60)
    assert swept().taken == 0  # written before
    aged(write(tmp_path, *LINES), -1)
    assert swept(60).taken == 1
    settings.CLAUDEOPS_TRANSCRIPT_FOLDERS = []
    swept(60)
    assert not TranscriptFolder.objects.exists()


def test_a_folder_is_swept_by_one_at_a_time(folder, tmp_path):
    aged(write(tmp_path, *LINES), 60)
    folder.swept_at = NOW - timedelta(minutes=1)
    folder.save()
    assert sweep(at=NOW).files == 0
    assert sweep(at=NOW + timedelta(minutes=2)).files == 1


def test_with_observation_off_nothing_is_swept(folder, tmp_path, settings):
    settings.CLAUDEOPS_OBSERVE = False
    aged(write(tmp_path, *LINES), 60)
    assert swept().files == 0


def test_the_task_sweeps_this_host(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("sessions_app.transcripts.sweep.IDLE", timedelta())
    write(tmp_path, *LINES)
    tasks.sweep_transcripts()
    assert Transcript.objects.count() == 1


def test_ten_thousand_transcripts_that_did_not_change_cost_a_stat_each(folder, tmp_path, settings):
    first = aged(write(tmp_path, *LINES), 60)
    stat = first.stat()
    for number in ids(10_000):
        aged_copy = first.parent / f"{number}.jsonl"
        os.link(first, aged_copy)
    Transcript.objects.bulk_create(
        Transcript(
            key=f"session:{number}",
            kind="claude",
            arrived_by="sweep",
            cli_session_id=number,
            host=settings.CLAUDEOPS_HOST,
            path=str(first.parent / f"{number}.jsonl"),
            size=stat.st_size,
            modified_ns=stat.st_mtime_ns,
        )
        for number in ids(10_000)
    )
    swept()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        started = time.monotonic()
        done = swept(1)
    assert (done.files, done.taken) == (10_001, 0)
    assert time.monotonic() - started < 5  # measured: 0.3 s
    assert len(queries) <= 10


def test_dates_are_utc(folder, tmp_path):
    aged(write(tmp_path, *LINES), 60)
    swept()
    assert Transcript.objects.get().first_at == datetime(2026, 5, 1, 12, tzinfo=UTC)
