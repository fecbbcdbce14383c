"""Which stream a session plays."""

from __future__ import annotations

import pytest

from sessions_app.errors import StreamNotFound
from sessions_app.models import Agent
from sessions_app.replay.pick import PACKAGE, PLAYER, name_of, next_stream


@pytest.fixture
def folder(tmp_path):
    for name in ("02-second.jsonl", "10-third.jsonl", "01-first.jsonl", "notes.txt"):
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "03-folder.jsonl").mkdir()
    return tmp_path


def test_the_streams_of_a_folder_are_played_in_turn_and_then_again(folder):
    names = [next_stream(folder, played).name for played in range(4)]
    assert names == ["01-first.jsonl", "02-second.jsonl", "10-third.jsonl", "01-first.jsonl"]


def test_an_agent_plays_what_it_names(folder):
    assert next_stream(Agent(slug="watch", replay_stream=str(folder)), 1).name == "02-second.jsonl"


def test_a_single_file_is_played_every_time(folder):
    file = folder / "02-second.jsonl"
    assert next_stream(file, 0) == next_stream(str(file), 7) == file


def test_a_relative_path_is_under_the_package(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert next_stream("replay/player.py", 0) == PLAYER == PACKAGE / "replay" / "player.py"


def test_an_agent_that_names_nothing_is_refused_by_name():
    with pytest.raises(StreamNotFound, match="Agent watch names no recorded stream"):
        next_stream(Agent(slug="watch", replay_stream=" "), 0)


def test_a_missing_folder_is_refused_with_the_place_that_was_looked_at(tmp_path):
    with pytest.raises(StreamNotFound, match="no such file or folder") as refusal:
        next_stream(Agent(slug="watch", replay_stream="demo/streams/gone"), 0)
    assert str(PACKAGE / "demo" / "streams" / "gone") in str(refusal.value)


def test_a_folder_without_streams_is_refused(tmp_path):
    with pytest.raises(StreamNotFound, match=r"holds no \.jsonl file") as refusal:
        next_stream(tmp_path, 0)
    assert str(tmp_path) in refusal.value.fix


def test_a_stream_of_the_package_is_named_so_that_it_is_found_after_a_move(tmp_path):
    own = next_stream("demo/streams/homelab-watch", 1)
    assert name_of(own) == f"demo/streams/homelab-watch/{own.name}"
    assert next_stream(name_of(own), 0) == own
    assert name_of(tmp_path / "mine.jsonl") == str(tmp_path / "mine.jsonl")
