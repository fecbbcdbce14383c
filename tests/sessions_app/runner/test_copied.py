"""Copied history: a fork and a resume write the records of another session anew, and these count once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memories.models import Memory, Transcript
from memories.observe.turns import TurnKind
from sessions_app.models import CooldownAction, Event, KnownRecord, LogEntry, Session, Trigger
from sessions_app.runner import copied, ingest
from sessions_app.runner.importer import import_log
from sessions_app.transcripts import arrivals
from sessions_app.transcripts.arrivals import Named, take_in
from sessions_app.transcripts.turns import turns_of
from tests.support.factories import SessionFactory
from tests.support.streams import stamp
from tests.support.transcripts import FOLDER

pytestmark = pytest.mark.django_db

FIRST, SECOND = "bbbbbbbb-0000-4000-8000-000000000021", "bbbbbbbb-0000-4000-8000-000000000022"
MARKERS = "Looked.\n[EVENT:warning:jellyfin] Slow start\n[COOLDOWN:restart:jellyfin] success - restarted\n"
MEMORY = "Jellyfin takes 60s to start after a restart"
SAID = f"{MARKERS}[MEMORY:timing:jellyfin] {MEMORY}"

Record = dict[str, Any]


def record(number: int, session: str, content: Any, kind: str = "assistant", **fields: Any) -> Record:
    """A record in the shape of CLI 2.1.330: `number` makes its id and its time stamp."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 1000, "output_tokens": 200}
        text = [{"type": "text", "text": content}] if isinstance(content, str) else content
        message |= {"id": f"msg_{number}", "model": "claude-opus-4-8", "content": text, "usage": usage}
        message |= {"stop_reason": "end_turn"}
    beside = {"isSidechain": False, "cwd": FOLDER, "version": "2.1.330", "parentUuid": None, "gitBranch": "main"}
    own = {"type": kind, "uuid": f"88a69b82-4796-557e-a01b-{number:012}", "timestamp": stamp(number)}
    return {**beside, **own, "sessionId": session, "message": message, **fields}


def history(session: str) -> list[Record]:
    call = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "docker ps"}}]
    brought = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "jellyfin up", "is_error": False}]
    return [
        record(1, session, "Check jellyfin", "user"),
        record(2, session, call),
        record(3, session, brought, "user"),
        record(4, session, SAID),
    ]


def own_part(session: str) -> list[Record]:
    return [record(5, session, "And the disks?", "user"), record(6, session, "[MEMORY:behavior:disks] Disks are slow")]


def written(folder: Path, records: list[Record]) -> Path:
    session = records[0]["sessionId"]
    place = folder / ".claude" / "projects" / FOLDER.replace("/", "-")
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{session}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def without_ids(records: list[Record]) -> list[Record]:
    return [{name: value for name, value in one.items() if name != "uuid"} for one in records]


COPIES: dict[str, Callable[[list[Record]], list[Record]]] = {
    "as it was": lambda records: records,
    "from another folder, by another version": lambda records: [
        {**one, "cwd": "/srv/other", "version": "2.2.0", "gitBranch": "fork", "slug": "new", "forkedFrom": FIRST}
        for one in records
    ],
    "at another time": lambda records: [{**one, "timestamp": stamp(900)} for one in records],
    "the end of it alone": lambda records: records[2:],
    "with other usage": lambda records: [{**one, "message": {**one["message"], "usage": {}}} for one in records],
}


def imported(folder: Path, *files: list[Record]) -> list[Session]:
    return [Session.objects.get(pk=import_log(written(folder, one), by="anna").sessions[0].session_id) for one in files]


@pytest.fixture(autouse=True)
def own_folder(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    settings.CLAUDEOPS_OBSERVE = True


def counted(session: Session) -> dict[str, Any]:
    names = ("num_turns", "cost_usd", "usage", "status")
    return {name: getattr(session, name) for name in names} | {
        "texts": list(LogEntry.objects.filter(session=session).order_by("seq").values_list("text", flat=True)),
        "memories": session.stats.get("memory_markers", 0),
        "tools": session.stats.get("tool_calls", 0),
    }


@pytest.mark.parametrize("kind", COPIES)
def test_of_an_imported_fork_its_own_part_counts(tmp_path, kind):
    fork = [*COPIES[kind](history(SECOND)), *own_part(SECOND)]
    first, second = imported(tmp_path, history(FIRST), fork)
    (alone,) = imported(
        tmp_path / "alone", [{**one, "sessionId": "c", "uuid": one["uuid"] + "c"} for one in own_part("c")]
    )
    assert counted(second) == counted(alone)
    assert second.stats["copied_lines"] == len(fork) - 2
    assert (first.num_turns, first.stats["memory_markers"], "copied_lines" in first.stats) == (2, 1, False)
    memory = Memory.objects.get(observation=MEMORY)
    assert (memory.confidence, memory.merged_count, memory.session_id) == (0.7, 0, first.pk)
    assert (Event.objects.count(), CooldownAction.objects.count()) == (1, 1)


def test_a_log_without_ids_is_known_by_its_time_stamps_and_what_it_says(tmp_path):
    _, second = imported(tmp_path, without_ids(history(FIRST)), without_ids([*history(SECOND), *own_part(SECOND)]))
    assert second.stats["copied_lines"] == 4
    other = [{**one, "timestamp": stamp(50 + number)} for number, one in enumerate(without_ids(history("d")))]
    assert "copied_lines" not in imported(tmp_path, other)[0].stats
    assert Memory.objects.get(observation=MEMORY).confidence == pytest.approx(0.8)


def test_a_copy_that_is_imported_first_has_the_history_and_the_original_its_own_end(tmp_path):
    end = [record(7, FIRST, "[MEMORY:behavior:fans] The fans are loud")]
    second, first = imported(tmp_path, [*history(SECOND), *own_part(SECOND)], [*history(FIRST), *end])
    assert (second.stats["memory_markers"], first.stats["memory_markers"], first.stats["copied_lines"]) == (2, 1, 4)
    assert Memory.objects.get(observation=MEMORY).confidence == 0.7
    assert Memory.objects.count() == 3


def test_a_log_that_is_imported_again_or_grown_stays_what_it_is(tmp_path):
    imported(tmp_path, history(FIRST), history(SECOND))
    before = (Memory.objects.count(), LogEntry.objects.count(), KnownRecord.objects.count())
    imported(tmp_path, history(FIRST), history(SECOND))
    assert (Memory.objects.count(), LogEntry.objects.count(), KnownRecord.objects.count()) == before
    _, second = imported(tmp_path, history(FIRST), [*history(SECOND), *own_part(SECOND)])
    assert (second.stats["copied_lines"], second.stats["memory_markers"], second.status) == (4, 1, "completed")


def test_two_imports_at_once_count_a_record_once(tmp_path, monkeypatch):
    prepared, others = ingest._prepared, [history(FIRST)]

    def meanwhile(*given: Any) -> Any:  # the other one is stored between the look and the write
        if others:
            session = SessionFactory(trigger=Trigger.IMPORT)
            digests = [copied.digest_of(one, Session) for one in others.pop()]
            KnownRecord.objects.bulk_create(KnownRecord(digest=one, session=session) for one in digests)
        return prepared(*given)

    monkeypatch.setattr(ingest, "_prepared", meanwhile)
    (session,) = imported(tmp_path, [*history(SECOND), *own_part(SECOND)])
    assert (session.stats["copied_lines"], session.stats["memory_markers"]) == (4, 1)
    assert not Memory.objects.filter(observation=MEMORY).exists()


def test_who_claims_the_ids_of_others_keeps_nothing_of_them_from_being_read(tmp_path):
    hostile = [{**one, "message": {"role": "user", "content": f"nothing {one['uuid']}"}} for one in history(SECOND)]
    marked = [{**one, "sessionId": "e", "isSidechain": True} for one in history(SECOND)]
    *_, first = imported(tmp_path, hostile, marked, history(FIRST))
    assert (first.stats["memory_markers"], "copied_lines" in first.stats) == (1, False)
    take_in(written(tmp_path / "observed", hostile), Named("command"))
    found = take_in(written(tmp_path / "observed", history(FIRST)), Named("command"))
    assert [turn.text for turn in turns_of(found.transcript.parts.get()).turns if turn.kind is TurnKind.AGENT] == [SAID]


def test_what_the_copied_history_had_read_counts_for_the_own_part(tmp_path):
    def read(session: str) -> list[Record]:
        call = [{"type": "tool_use", "id": "toolu_2", "name": "WebFetch", "input": {"url": "https://example.org"}}]
        brought = [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "Disks are slow", "is_error": False}]
        return [record(1, session, call), record(2, session, brought, "user"), record(3, session, "Read it.")]

    imported(tmp_path, read(FIRST), [*read(SECOND), *own_part(SECOND)])
    assert Memory.objects.get().exposure == "outside"


def test_a_fork_of_a_session_of_ours_counts_once_and_a_session_of_ours_is_never_taken_for_a_copy(tmp_path):
    # Its stream has no time stamps; the demo plays one recorded stream again and again.
    stream = [{name: value for name, value in one.items() if name != "timestamp"} for one in history(FIRST)]
    for runner, tier in (("claude", 1), ("claude", 2), ("replay", 1)):
        session = SessionFactory(runner=runner, tier=tier, status="running", log_file=f"sessions/{runner}{tier}.jsonl")
        log = tmp_path / "data" / session.log_file
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(json.dumps(one) + "\n" for one in stream))
        assert ingest.ingest(session.pk, final=True).state.stats["memory_markers"] == 1
    (fork,) = imported(tmp_path, [*history(SECOND), *own_part(SECOND)])
    assert (fork.stats["copied_lines"], fork.stats["memory_markers"]) == (4, 1)


# Observed transcripts.


def observed(folder: Path, records: list[Record]) -> tuple[Transcript, list[str]]:
    """Take a transcript in; return it with what of it the observer will be shown."""
    found = take_in(written(folder, records), Named("command"))
    assert found.transcript is not None
    parts = found.transcript.parts.order_by("number")
    return found.transcript, [turn.text for part in parts for turn in turns_of(part).turns]


@pytest.mark.parametrize("kind", COPIES)
def test_of_an_observed_fork_its_own_part_is_observed(tmp_path, kind):
    _, texts = observed(tmp_path, history(FIRST))
    assert texts[0] == "Check jellyfin" and texts[-1] == SAID
    fork, texts = observed(tmp_path, [*COPIES[kind](history(SECOND)), *own_part(SECOND)])
    assert texts == ["And the disks?", "[MEMORY:behavior:disks] Disks are slow"]
    assert fork.parts.get().end == fork.size


def test_a_fork_that_says_nothing_of_its_own_has_nothing_to_observe_until_it_goes_on(tmp_path):
    observed(tmp_path, without_ids(history(FIRST)))
    planned = take_in(written(tmp_path, without_ids(history(SECOND))), Named("command"), dry_run=True)
    assert (planned.planned, planned.characters) == (0, 0)
    assert observed(tmp_path, without_ids(history(SECOND)))[1] == []
    assert len(observed(tmp_path, without_ids([*history(SECOND), *own_part(SECOND)]))[1]) == 2


def test_a_fork_that_arrives_first_is_observed_and_of_the_original_its_own_end(tmp_path):
    assert len(observed(tmp_path, [*history(SECOND), *own_part(SECOND)])[1]) == 6
    _, texts = observed(tmp_path, [*history(FIRST), record(7, FIRST, "Go on.", "user"), record(8, FIRST, "I do.")])
    assert texts == ["Go on.", "I do."]


def test_two_transcripts_at_once_are_observed_once(tmp_path, monkeypatch):
    cut, others = arrivals.cut, [history(FIRST)]

    def meanwhile(*given: Any, **more: Any) -> Any:  # the other one arrives between the look and the write
        parts = cut(*given, **more)
        if others:
            assert len(observed(tmp_path, others.pop())[1]) == 4
        return parts

    monkeypatch.setattr(arrivals, "cut", meanwhile)
    assert len(observed(tmp_path, [*history(SECOND), *own_part(SECOND)])[1]) == 2


def test_the_original_that_was_deleted_gives_its_history_back(tmp_path):
    first, _ = observed(tmp_path, history(FIRST))
    first.delete()
    assert len(observed(tmp_path, history(SECOND))[1]) == 4
