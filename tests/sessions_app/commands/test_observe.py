"""`manage.py observe`: what it would cost first, then each file once, and what was left out with its reason."""

from __future__ import annotations

import json
from functools import partial

import pytest
from django.conf import settings as django_settings

from memories.models import Memory, ModelCall, Stage, Transcript, TranscriptPart
from memories.observe import pipeline
from memories.observe.instructions import INSTRUCTIONS, message
from memories.observe.prepare import prepare
from sessions_app.models import TranscriptFolder
from sessions_app.transcripts.arrivals import see
from sessions_app.transcripts.turns import turns_of
from tests.memories.llm.conftest import recordings  # noqa: F401  # a fixture
from tests.memories.observe.conftest import FACT, answer
from tests.support import commands, streams
from tests.support.factories import ProjectFactory, SessionFactory
from tests.support.transcripts import SESSION, says, typed, write

pytestmark = pytest.mark.django_db

LINES = [typed("Remember: the photos volume must be unmounted before a snapshot."), says("I will unmount it first")]
OTHER = "00000000-0000-4000-8000-000000000001"


run = partial(commands.run, "observe")
answered = partial(commands.result, "observe")


@pytest.fixture
def asked(tmp_path):
    """What the observer is asked about `LINES`."""
    other = write(tmp_path / "recording", *LINES)
    see(other, arrived_by="command")
    text = message(prepare(turns_of(TranscriptPart.objects.get())).text, project="", agent="")
    Transcript.objects.all().delete()
    return text


@pytest.fixture
def said(asked, recordings):  # noqa: F811
    """The observer's answer to `LINES`."""
    recordings.say("observer", INSTRUCTIONS, asked, answer(FACT))


@pytest.fixture(autouse=True)
def observing(settings):
    settings.CLAUDEOPS_OBSERVE = True


UNREADABLE = {
    "no JSON and no tags": "Here is what I saw: a volume, and a snapshot.",
    "JSON that is cut off": '{"observations": [{"narrative": "The photos volume',
    "an array of another shape": '["The photos volume is unmounted before a snapshot is taken"]',
    "an empty answer": "",
    "a refusal": "I'm sorry, there is nothing I can help with.",
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_answer_that_cannot_be_read_does_not_lose_the_session(asked, recordings, tmp_path, kind):  # noqa: F811
    path = write(tmp_path, *LINES)
    recordings.say("observer", INSTRUCTIONS, asked, UNREADABLE[kind])
    code, out, _ = run(path, "--yes")
    assert code == 1
    assert "Observed: 0 of 1 parts, 0 facts." in out and "Not observed: 1 part." in out
    assert "A part waits at the stage call: " in out and ("cannot be read" in out or "is empty" in out)
    assert TranscriptPart.objects.get().state == "unreadable"
    recordings.say("observer", INSTRUCTIONS, asked, answer(FACT))
    out = run(path, "--dry-run")[1]
    assert (
        "Parts that failed, or whose answer could not be read, to be observed again: 1." in out and "in 1 call" in out
    )
    assert TranscriptPart.objects.get().state == "unreadable"
    assert (run(path)[0], ModelCall.objects.exclude(outcome="unreadable").count() < 2) == (1, True)  # nobody agreed
    code, out, _ = run(path, "--yes")
    assert (code, "Observed: 1 of 1 parts, 1 fact" in out) == (0, True), out
    assert Memory.objects.get().observation == "The photos volume is unmounted before a snapshot is taken"


def test_a_fenced_answer_in_json_is_read(asked, recordings, tmp_path):  # noqa: F811
    fact = {
        "text": "The photos volume is unmounted before a snapshot",
        "gate": "allow",
        "confidence": 0.9,
        "category": "operations",
    }
    recordings.say(
        "observer", INSTRUCTIONS, asked, f"```json\n{json.dumps({'observations': [{'facts': [fact]}]})}\n```"
    )
    assert run(write(tmp_path, *LINES), "--yes")[0] == 0
    assert Memory.objects.get().observation == fact["text"]


def test_it_observes_a_transcript_once_and_says_what_came_of_it(said, tmp_path):
    path = write(tmp_path, *LINES)
    ProjectFactory(path="/srv/shop", name="")
    code, out, err = run(path, "--yes")
    assert code == 0, err
    assert "Observed: 1 of 1 parts, 1 fact (1 stored as a new memory)." in out
    assert "1 file: 1 new." in err and "in 1 call of haiku: about $0.0" in err and "1 of 1: part 1" in err
    assert Memory.objects.get().observation == "The photos volume is unmounted before a snapshot is taken"
    _, out, err = run(path)  # nothing new: nothing to agree to
    assert "1 file: 1 observed before, or without words." in out
    assert (Memory.objects.count(), ModelCall.objects.count(), TranscriptPart.objects.count()) == (1, 1, 1)


def test_a_dry_run_says_what_it_costs_and_writes_nothing(tmp_path):
    path = write(tmp_path, *LINES)
    found = answered(path, "--dry-run")
    assert found["estimate"]["calls"] == 1 and 0 < found["estimate"]["usd"] < 0.1
    assert found["files"] == [
        {"path": str(path), "outcome": "new", "why": "", "transcript": None, "parts": 1, "characters": 87}
    ]
    assert "Nothing was changed (--dry-run)." in run(path, "--dry-run")[1]
    assert not Transcript.objects.exists()


def test_it_does_not_start_before_somebody_agreed(tmp_path):
    path = write(tmp_path, *LINES)
    code, _, err = run(path)
    assert (code, "Nobody is there to agree to the cost." in err) == (1, True)
    assert not Transcript.objects.exists()


@pytest.mark.parametrize(
    ("model", "words"),
    [("http:llama-3", "of llama-3: no price known"), ("", "no model is set for the observer")],
)
def test_a_model_without_a_price_is_said_to_have_none(tmp_path, settings, model, words):
    settings.CLAUDEOPS_MODEL_OBSERVER = model
    assert words in run(write(tmp_path, *LINES), "--dry-run")[1]


def test_more_than_the_days_budget_is_said_before_it_starts(tmp_path, settings):
    settings.CLAUDEOPS_MODEL_DAILY_USD = {"": 0.0001}
    out = run(write(tmp_path, *LINES), "--dry-run")[1]
    assert "Today $0.00 may still be spent on it; the rest waits for the next days." in out


def test_a_folder_is_taken_with_what_is_below_it_and_without_subagents(tmp_path):
    write(tmp_path, *LINES)
    inside = write(tmp_path, *LINES, session=OTHER)
    (inside.parent / SESSION / "subagents").mkdir(parents=True)
    (inside.parent / SESSION / "subagents" / "agent-1.jsonl").write_text(typed("count", isSidechain=True))
    (inside.parent / "other.jsonl").write_text('{"a": 1}\n')
    found = answered(tmp_path, "--queue", "--yes")
    assert sorted(one["outcome"] for one in found["files"]) == ["new", "new", "skipped"]
    assert Transcript.objects.count() == 2
    assert set(Transcript.objects.values_list("arrived_by", flat=True)) == {"command"}
    assert not ModelCall.objects.exists()


def test_a_backfill_takes_the_folders_that_are_swept_however_old(tmp_path, settings):
    path = write(tmp_path, *LINES)
    code, _, err = run("--backfill", "--queue", "--yes")
    assert (code, "No folder of transcripts is known here." in err) == (1, True)
    TranscriptFolder.objects.create(host=settings.CLAUDEOPS_HOST, path=str(path.parent.parent))
    answered("--backfill", "--queue", "--yes")
    assert Transcript.objects.count() == 1


def test_hook_command_and_backfill_observe_the_same_content_once(said, tmp_path, settings):
    path = write(tmp_path, *LINES)
    TranscriptFolder.objects.create(host=settings.CLAUDEOPS_HOST, path=str(path.parent.parent))
    see(path, arrived_by="hook", ended=True)
    run(path, "--yes")
    run(path.parent, "--yes")
    run("--backfill", "--yes")
    assert (Transcript.objects.count(), TranscriptPart.objects.count(), ModelCall.objects.count()) == (1, 1, 1)
    assert Memory.objects.count() == 1


def test_an_interrupted_run_goes_on_without_asking_again(said, tmp_path):
    path = write(tmp_path, *LINES)
    run(path, "--queue", "--yes")
    code, out, err = run(path)
    assert code == 0, err
    assert "Observed: 1 of 1 parts" in out


def test_why_parts_wait_is_said_and_the_same_command_goes_on(said, tmp_path, settings):
    path = write(tmp_path, *LINES)
    model, settings.CLAUDEOPS_MODEL_OBSERVER = settings.CLAUDEOPS_MODEL_OBSERVER, ""
    code, out, _ = run(path, "--yes")
    assert code == 0
    assert "Observed: 0 of 1 parts, 0 facts." in out
    assert "A part waits at the stage call: no model is set for the observer (CLAUDEOPS_MODEL_OBSERVER)" in out
    assert "What waits is caught up by the workers, or by the same command later." in out
    settings.CLAUDEOPS_MODEL_OBSERVER = model
    Stage.objects.update(not_before=None)
    assert "Observed: 1 of 1 parts" in run(path)[1]


def test_a_file_that_is_changed_while_it_is_observed_fails_with_the_reason(tmp_path):
    path = write(tmp_path, *LINES)
    run(path, "--queue", "--yes")
    write(tmp_path, *reversed(LINES))
    code, out, _ = run(path)
    assert code == 1
    assert "A part failed at the stage prepare: its file was changed" in out


def test_while_a_worker_observes_the_command_leaves_it_to_it(said, tmp_path):
    with pipeline.draining(django_settings.CLAUDEOPS_HOST) as mine:
        assert mine
        out = run(write(tmp_path, *LINES), "--yes")[1]
    assert "The workers observe 1 file. A worker of this host is at it already." in out
    assert Transcript.objects.count() == 1 and not ModelCall.objects.exists()


def test_the_project_and_the_agent_can_be_named(tmp_path):
    project = ProjectFactory()
    answered(write(tmp_path, *LINES), "--project", project.slug, "--agent", "pm", "--queue", "--yes")
    found = Transcript.objects.get()
    assert (found.project, found.agent) == (project, "pm")
    code, _, err = run(tmp_path, "--project", "none")
    assert (code, "There is no project 'none'." in err) == (1, True)


def test_the_log_of_a_session_of_ours_is_observed_as_its(tmp_path, settings):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    session = SessionFactory(log_file="sessions/a/stdout-1.jsonl", cli_session_id=SESSION, task="Look after it")
    log = tmp_path / session.log_file
    log.parent.mkdir(parents=True)
    log.write_text("".join([streams.init(), streams.text("All well"), streams.result()]))
    answered(log, "--queue", "--yes")
    found = Transcript.objects.get()
    assert (found.session, found.kind, found.arrived_by) == (session, "stream", "command")
    assert answered(write(tmp_path / "home", *LINES), "--dry-run")["files"][0]["why"] == (
        f"It is the transcript of session {session.pk}, whose own log is observed."
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Say what to observe: files, folders, or --backfill."),
        (["/nowhere/at/all"], "There is no /nowhere/at/all."),
    ],
)
def test_wrong_input_is_named(db, arguments, words):
    code, _, err = run(*arguments)
    assert (code, words in err) == (1, True)


def test_an_empty_folder_and_an_odd_file_are_named(tmp_path):
    code, _, err = run(tmp_path)
    assert (code, "No transcript (*.jsonl) is there." in err) == (1, True)
    odd = tmp_path / "picture.png"
    odd.write_bytes(b"\x89PNG\x00")
    code, out, _ = run(odd)
    assert code == 0
    assert f"Left out: {odd}: It is no transcript, no stream-json log and no text." in out
