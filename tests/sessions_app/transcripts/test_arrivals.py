"""A transcript's file is taken in: its parts once, whoever names it, and nothing of another."""

from __future__ import annotations

import os

import pytest
from django_q.models import OrmQ

from memories.models import ArrivedBy, Stage, StageState, Transcript, TranscriptPart
from sessions_app.models import Session, TranscriptFolder, Trigger
from sessions_app.runner.turns import CLAIMED
from sessions_app.transcripts import arrivals
from sessions_app.transcripts.arrivals import Named, Outcome, see, take_in
from sessions_app.transcripts.files import known_place
from tests.support.factories import ProjectFactory, SessionFactory
from tests.support.processes import call, wait_for
from tests.support.streams import init, result, text
from tests.support.streams import user as stream_user
from tests.support.transcripts import SESSION, brings, calls, line, receipt, says, summary, typed, write

pytestmark = pytest.mark.django_db

FIRST = [typed("Never restart the database by day"), says("I will wait for the night")]
THEN = [typed("And tell anna first"), says("I will tell anna")]


def parts():
    return list(TranscriptPart.objects.order_by("number").values_list("number", "start", "end"))


def by_command(path, **named):
    return take_in(path, Named(ArrivedBy.COMMAND, **named))


def test_a_transcript_is_taken_in_with_a_part_its_stages_and_a_wake_up(tmp_path, settings):
    path = write(tmp_path, *FIRST)
    receipt(path)
    found = see(path, arrived_by=ArrivedBy.HOOK, installation="laptop", ended=True)
    assert (found.key, found.kind, found.arrived_by) == (f"session:{SESSION}", "claude", "hook")
    assert (found.folder, found.path, found.host) == ("/srv/shop", str(path), settings.CLAUDEOPS_HOST)
    assert (found.size, found.observed_to) == (path.stat().st_size, path.stat().st_size)
    assert found.ended_at is not None and found.installation == "laptop"
    assert (found.exposure, found.exposed_to, found.state) == ("nothing", [], {"turns": 2})
    assert found.first_at.isoformat() == "2026-05-01T12:00:00+00:00"
    assert parts() == [(1, 0, path.stat().st_size)]
    assert list(Stage.objects.order_by("position").values_list("name", flat=True)) == [
        *("prepare", "call", "parse", "classify", "gate", "match", "store")
    ]
    assert set(Stage.objects.values_list("state", flat=True)) == {StageState.WAITING}
    assert OrmQ.objects.count() == 1


def test_without_the_receipt_of_a_hook_in_its_session_a_transcript_is_outside_text(tmp_path):
    path = write(tmp_path, *FIRST)
    receipt(tmp_path / path.name)  # that of a file elsewhere, whose session has the same id
    found = see(path, arrived_by=ArrivedBy.HOOK)
    assert (found.exposure, found.exposed_to) == ("outside", [CLAIMED])


def test_the_same_content_is_taken_once_by_hook_command_sweep_and_copy(tmp_path):
    path = write(tmp_path, *FIRST)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    first = see(path, arrived_by=ArrivedBy.HOOK)
    for arrived_by in (ArrivedBy.HOOK, ArrivedBy.SWEEP):
        assert see(path, arrived_by=arrived_by, ended=True) == first
    assert [by_command(one).outcome for one in (path, copy)] == [Outcome.UNCHANGED] * 2
    assert (Transcript.objects.count(), len(parts())) == (1, 1)
    assert Transcript.objects.get().path == str(path)
    assert OrmQ.objects.count() == 1


def test_a_longer_transcript_adds_its_tail(tmp_path):
    path = write(tmp_path, *FIRST)
    see(path, arrived_by=ArrivedBy.HOOK)
    before = path.stat().st_size
    write(tmp_path, *FIRST, *THEN)
    found = by_command(path)
    assert found.outcome is Outcome.GROWN
    assert parts() == [(1, 0, before), (2, before, path.stat().st_size)]


def test_a_longer_copy_adds_its_tail_and_takes_the_place_of_the_file(tmp_path):
    path = write(tmp_path, *FIRST)
    see(path, arrived_by=ArrivedBy.HOOK)
    copy = tmp_path / "copy.jsonl"
    copy.write_text("".join([*FIRST, *THEN]))
    assert by_command(copy).outcome is Outcome.GROWN
    assert Transcript.objects.get().path == str(copy)
    assert len(parts()) == 2


def test_a_log_of_the_same_session_with_other_content_adds_nothing_and_says_so(tmp_path):
    see(write(tmp_path, *FIRST), arrived_by=ArrivedBy.HOOK)
    log = tmp_path / "log.jsonl"
    log.write_text("".join([init(), text("I will wait for the night"), result()]))
    found = by_command(log)
    assert found.outcome is Outcome.OTHER
    assert "the same session" in found.why and "nothing was added" in found.why
    assert len(parts()) == 1
    assert Transcript.objects.get().problem == ""


def test_a_file_of_another_host_in_the_same_place_is_another_file(tmp_path):
    path = write(tmp_path, *FIRST)
    by_command(path)
    Transcript.objects.update(host="elsewhere")
    write(tmp_path, *THEN)
    assert by_command(path).outcome is Outcome.OTHER  # of the same session; not a change of that host's file
    assert Transcript.objects.get().problem == ""
    note = tmp_path / "notes.txt"
    note.write_text("user: Never restart the database by day\n")
    first = by_command(note).transcript
    Transcript.objects.filter(pk=first.pk).update(host="elsewhere")
    note.write_text(note.read_text() + "user: And tell anna first\n")
    grown = by_command(note)
    assert (grown.outcome, grown.transcript == first) == (Outcome.NEW, False)


def test_a_file_whose_beginning_changed_is_a_problem_and_nothing_is_lost(tmp_path):
    path = write(tmp_path, *FIRST)
    see(path, arrived_by=ArrivedBy.HOOK)
    before = parts()
    write(tmp_path, *THEN, *FIRST)
    found = by_command(path)
    assert found.outcome is Outcome.CHANGED
    assert parts() == before
    assert "was changed" in Transcript.objects.get().problem


def test_a_file_that_was_shortened_is_a_problem(tmp_path):
    path = write(tmp_path, *FIRST)
    see(path, arrived_by=ArrivedBy.HOOK)
    write(tmp_path, FIRST[0])
    assert by_command(path).outcome is Outcome.CHANGED


def test_an_incomplete_last_line_waits(tmp_path):
    path = write(tmp_path, *FIRST)
    whole = path.stat().st_size
    with path.open("a") as file:
        file.write(THEN[0][:-20])
    see(path, arrived_by=ArrivedBy.HOOK)
    see(path, arrived_by=ArrivedBy.HOOK, ended=True)
    assert parts() == [(1, 0, whole)]
    with path.open("a") as file:
        file.write(THEN[0][-20:])
    see(path, arrived_by=ArrivedBy.HOOK)
    assert parts()[1] == (2, whole, path.stat().st_size)


def test_a_tail_without_words_waits_for_some(tmp_path):
    path = write(tmp_path, *FIRST)
    see(path, arrived_by=ArrivedBy.HOOK)
    whole = path.stat().st_size
    write(tmp_path, *FIRST, calls(), brings("3 containers"))
    assert by_command(path).outcome is Outcome.UNCHANGED
    write(tmp_path, *FIRST, calls(), brings("3 containers"), says("There are three"))
    see(path, arrived_by=ArrivedBy.HOOK)
    assert parts()[1] == (2, whole, path.stat().st_size)


def test_the_summary_of_a_compaction_alone_makes_no_part(tmp_path):
    path = write(tmp_path, *FIRST)
    see(path, arrived_by=ArrivedBy.HOOK)
    write(tmp_path, *FIRST, summary("They spoke of the database"))
    see(path, arrived_by=ArrivedBy.HOOK, ended=True)
    assert len(parts()) == 1


def test_a_transcript_without_words_is_known_and_has_no_part(tmp_path):
    found = see(write(tmp_path, line("queue-operation", operation="enqueue")), arrived_by=ArrivedBy.SWEEP)
    assert found is not None and parts() == [] and OrmQ.objects.count() == 0


def test_a_long_transcript_becomes_parts_of_bounded_size(tmp_path):
    lines = [typed(f"{number} " + "word " * 4_000) for number in range(10)]
    path = write(tmp_path, *lines)
    found = by_command(path)
    assert len(found.parts) == len(parts()) > 2
    assert parts()[0][1] == 0 and parts()[-1][2] == path.stat().st_size
    assert all(end - start < arrivals.MOST * 1.2 for _, start, end in parts())
    assert found.characters == pytest.approx(200_000, rel=0.05)


def test_a_dry_run_says_what_would_come_and_writes_nothing(tmp_path):
    found = take_in(write(tmp_path, *FIRST), Named(ArrivedBy.COMMAND), dry_run=True)
    assert (found.outcome, found.transcript) == (Outcome.NEW, None)
    assert found.characters == len("Never restart the database by day" + "I will wait for the night")
    assert not Transcript.objects.exists() and not OrmQ.objects.exists()


@pytest.mark.parametrize("name", ["passwords.jsonl", "notes.txt"])
def test_a_hook_cannot_name_a_file_outside_of_the_folders_of_transcripts(tmp_path, name):
    path = tmp_path / name
    path.write_text("".join(FIRST))
    assert see(path, arrived_by=ArrivedBy.HOOK) is None
    link = write(tmp_path, *FIRST)
    link.unlink()
    link.symlink_to(path)
    assert see(link, arrived_by=ArrivedBy.HOOK) is None
    assert see(tmp_path / "missing.jsonl", arrived_by=ArrivedBy.HOOK) is None
    assert not Transcript.objects.exists()


def test_a_folder_of_that_name_outside_of_the_configured_homes_is_anybody_s(tmp_path, settings, monkeypatch, subtests):
    """In the repository, in another home, below a home of the same beginning, by a link, or another user's file."""
    home = write(tmp_path, *FIRST).parents[1]
    other = write(tmp_path / "home", *FIRST)
    repository = write(tmp_path / "shop", *FIRST)
    beside = tmp_path / ".claude" / "projects-2" / "x.jsonl"
    beside.parent.mkdir()
    beside.write_text("".join(FIRST))
    (home / "link").symlink_to(other.parent)
    (home / "up.jsonl").symlink_to(repository)
    foreign = write(tmp_path, *FIRST).with_name("foreign.jsonl")
    foreign.write_text("".join(FIRST))
    places = [other, repository, beside, home / "link" / other.name, home / "up.jsonl", home / ".." / beside.name]
    if os.geteuid() == 0:  # only root gives files away
        os.chown(foreign, 65534, 65534)
        places.append(foreign)
    for path in places:
        with subtests.test(str(path.relative_to(tmp_path))):
            assert known_place(str(path)) is None and see(path, arrived_by=ArrivedBy.HOOK) is None
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings.CLAUDEOPS_CLAUDE_HOME = ""
    (tmp_path / "linked").symlink_to(tmp_path / "shop" / ".claude")
    settings.CLAUDEOPS_TRANSCRIPT_FOLDERS = [str(tmp_path / "linked" / "projects")]
    assert known_place(str(other)) == other, "the home of this process"
    assert known_place(str(repository)) == repository, "a link that the setting names is its owner's"
    assert known_place(str(home / "x.jsonl")) is None


def test_a_hook_may_name_a_file_in_a_folder_for_which_hooks_were_installed(tmp_path, settings):
    path = tmp_path / "kept" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.write_text("".join(FIRST))
    assert see(path, arrived_by=ArrivedBy.HOOK) is None
    TranscriptFolder.objects.create(host=settings.CLAUDEOPS_HOST, path=str(path.parent))
    assert see(path, arrived_by=ArrivedBy.HOOK) is not None


def test_excluded_files_and_folders_are_left_out(tmp_path, settings):
    path = write(tmp_path, *FIRST)
    for glob in ("/srv/shop", "/srv/*", "*/.claude/*"):
        settings.CLAUDEOPS_OBSERVE_EXCLUDE = [glob]
        found = by_command(path)
        assert (found.outcome, found.why) == (Outcome.SKIPPED, f"CLAUDEOPS_OBSERVE_EXCLUDE leaves it out: {glob}")
    settings.CLAUDEOPS_OBSERVE_EXCLUDE = ["/srv/other"]
    assert by_command(path).outcome is Outcome.NEW


def test_nothing_arrives_while_observation_is_off(tmp_path, settings):
    settings.CLAUDEOPS_OBSERVE = False
    assert see(write(tmp_path, *FIRST), arrived_by=ArrivedBy.HOOK) is None
    assert not Transcript.objects.exists()


def test_the_project_is_that_of_the_folder(tmp_path):
    project = ProjectFactory(path="/srv/shop")
    assert see(write(tmp_path, *FIRST), arrived_by=ArrivedBy.SWEEP).project == project


def test_a_worktree_has_the_settings_of_its_project_also_when_only_its_transcript_tells_of_it(tmp_path):
    """It is gone, and git has forgotten it: the CLI's record says where the session came from."""
    ProjectFactory(slug="shop", path="/srv/shop", observed=False)
    state = {"originalCwd": "/srv/shop/web", "worktreePath": "/var/trees/x", "worktreeBranch": "x"}
    record = line("worktree-state", worktreeSession=state, cwd="")
    inside = typed("Never restart the database by day", cwd="/var/trees/x")
    assert by_command(write(tmp_path, inside, record)).why == "The sessions of project shop are not observed."
    for number, state in enumerate((None, [], {"originalCwd": 7}, {"originalCwd": "/srv/other"})):
        path = write(
            tmp_path, line("worktree-state", worktreeSession=state, cwd=""), inside, session=f"{SESSION[:-1]}{number}"
        )
        assert by_command(path).transcript.project is None


def test_a_hook_of_one_project_brings_a_file_of_another_to_that_other(tmp_path):
    own, other = ProjectFactory(), ProjectFactory(path="/srv/shop")
    path = write(tmp_path, *FIRST)
    assert see(path, arrived_by=ArrivedBy.HOOK, project=own).project == other
    Transcript.objects.all().delete()
    other.delete()
    assert see(path, arrived_by=ArrivedBy.HOOK, project=own).project == own
    Transcript.objects.all().delete()
    assert by_command(path, project=own).transcript.project == own


def test_the_transcript_of_a_session_of_ours_is_not_taken(tmp_path):
    session = SessionFactory(cli_session_id=SESSION)
    found = by_command(write(tmp_path, *FIRST))
    assert found.outcome is Outcome.SKIPPED and f"session {session.pk}" in found.why
    Session.objects.update(trigger=Trigger.IMPORT)
    assert by_command(write(tmp_path, *FIRST)).outcome is Outcome.NEW


def test_the_transcript_of_a_subagent_is_not_taken_for_that_of_its_session(tmp_path):
    found = by_command(write(tmp_path, typed("count", isSidechain=True), says("three", isSidechain=True)))
    assert (found.outcome, found.why) == (Outcome.SKIPPED, "It is the transcript of a subagent.")


def test_a_stream_json_log_and_a_plain_text_are_taken_by_the_command_alone(tmp_path):
    log, plain = tmp_path / "log.jsonl", tmp_path / "notes.txt"
    log.write_text("".join([init(), stream_user("Look"), text("All well"), result()]))
    plain.write_text("User: never restart it by day\n\nClaude: I will wait\n")
    assert [by_command(one).outcome for one in (log, plain)] == [Outcome.NEW] * 2
    assert sorted(Transcript.objects.values_list("kind", flat=True)) == ["stream", "text"]
    other = tmp_path / "other.txt"
    other.write_text("Never restart it by day\n")
    assert see(other, arrived_by=ArrivedBy.SWEEP) is None


def test_a_plain_text_that_grew_adds_its_tail(tmp_path):
    plain = tmp_path / "notes.txt"
    plain.write_text("Never restart it by day\n\n")
    by_command(plain)
    with plain.open("a") as file:
        file.write("And tell anna first\n")
    assert by_command(plain).outcome is Outcome.GROWN
    assert Transcript.objects.count() == 1 and len(parts()) == 2


@pytest.mark.parametrize("content", [b"\x89PNG\x00\x00", b"", b'{"a": 1}\n'])
def test_what_is_no_transcript_is_named(tmp_path, content):
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content)
    found = by_command(path)
    assert (found.outcome, found.why) == (Outcome.SKIPPED, "It is no transcript, no stream-json log and no text.")
    assert by_command(tmp_path).why == "There is no such file."


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    path = write(tmp_path, *FIRST)
    path.chmod(0)
    assert "cannot be read" in by_command(path).why


AT_ONCE = """
import pathlib, time
from sessions_app.transcripts.arrivals import see
folder = pathlib.Path({folder!r})
(folder / "ready-{number}").touch()
while len(list(folder.glob("ready-*"))) < 2:
    time.sleep(0.001)
while not (folder / "written").exists():
    see({path!r}, arrived_by="sweep")
see({path!r}, arrived_by="sweep")
"""


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_two_processes_that_take_in_a_growing_transcript_at_once_take_each_byte_once(tmp_path):
    path = write(tmp_path, *FIRST)
    more = {"CLAUDEOPS_OBSERVE": "true"}
    given = {"folder": str(tmp_path), "path": str(path)}
    started = [call(AT_ONCE.format(number=number, **given), more) for number in (1, 2)]
    wait_for(lambda: len(list(tmp_path.glob("ready-*"))) == 2)
    for number in range(30):
        with path.open("a") as file:
            file.write(says(f"Word {number}"))
        wait_for(lambda: Transcript.objects.filter(observed_to=path.stat().st_size).exists())
    (tmp_path / "written").touch()
    for process in started:
        output = process.communicate(timeout=60)
        assert process.returncode == 0, output
    found = parts()
    assert [start for _, start, _ in found] == [0, *(end for _, _, end in found[:-1])]
    assert found[-1][2] == path.stat().st_size
    assert [number for number, *_ in found] == list(range(1, len(found) + 1))
    assert Transcript.objects.count() == 1 and Stage.objects.count() == 7 * len(found)
