"""What a session has read, by the lines of its log: when it begins, what ends a call, and what cannot be judged."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner import stream
from sessions_app.runner.exposure import MORE, MOST_CALLS, MOST_RESULTS, MOST_SOURCES, Reading, begun
from sessions_app.runner.projection import Batch, State, project
from tests.support import streams

NOW = streams.START


def call(call_id: str, command: str = "docker ps", name: str = "Bash", **fields: Any) -> str:
    content = [{"type": "tool_use", "id": call_id, "name": name, "input": {"command": command}}]
    return streams.line(type="assistant", message={"id": "msg_1", "model": "m", "content": content}, **fields)


def answer(call_id: str, words: str = "ok", **fields: Any) -> str:
    content = [{"type": "tool_result", "tool_use_id": call_id, "content": words}]
    return streams.line(type="user", message={"role": "user", "content": content}, **fields)


def marker(words: str = "[MEMORY:timing:web] Takes a minute to start") -> str:
    return streams.text(words)


def read(*lines: str | bytes, state: State | None = None) -> tuple[State, Batch]:
    state, batch, offset = state or State(), Batch(), 0
    for line in lines:
        raw = line if isinstance(line, bytes) else line.encode()
        project(stream.parse(raw), offset, state, batch, now=NOW)
        offset += len(raw)
    return state, batch


def exposures(batch: Batch) -> list[tuple[str, tuple[str, ...]]]:
    return [(found.read.exposure, found.read.sources) for found in batch.memories]


def test_an_exposure_begins_with_the_result() -> None:
    _, batch = read(
        marker("[MEMORY:timing:a] Said before all else"),
        call("1", "docker ps"),
        answer("1"),
        marker("[MEMORY:timing:b] Said after the house"),
        call("2", "docker logs web"),
        marker("[MEMORY:timing:c] Said while the log is fetched"),
        answer("2"),
        marker("[MEMORY:timing:d] Said after the log"),
    )
    assert exposures(batch) == [
        ("nothing", ()),
        ("house", ()),
        ("house", ()),
        ("outside", ("logs: web",)),
    ]


def test_the_structured_answer_is_said_last() -> None:
    structured = {"memories": [{"key": "web:timing", "value": "Takes a minute"}]}
    _, batch = read(call("1", "docker logs web"), answer("1"), streams.result(structured_output=structured))
    assert exposures(batch) == [("outside", ("logs: web",))]


def test_a_call_that_the_cli_refused_read_nothing() -> None:
    refused = streams.line(type="system", subtype="permission_denied", tool_name="Bash", tool_use_id="1")
    state, _ = read(call("1", "curl example.org"), refused, answer("1", "Permission to use Bash has been denied"))
    assert (state.reading.exposure, state.reading.calls) == ("nothing", {})
    pretended, _ = read(call("1", "curl example.org"), answer("1", "Permission to use Bash has been denied"))
    assert pretended.reading.exposure == "outside"


def test_calls_beside_each_other_are_told_apart() -> None:
    state, batch = read(call("1", "docker logs web"), call("2", "df -h"), answer("2"), marker())
    assert exposures(batch) == [("house", ())]
    assert list(state.reading.calls.values()) == [["logs: web"]]


def test_a_result_of_an_unknown_call_is_outside() -> None:
    state, _ = read(answer("7"))
    assert state.reading.sources == ["unknown call"]


def test_a_subagent_is_judged_by_its_own_lines_else_it_is_outside() -> None:
    own = (call("9", "df -h", parent_tool_use_id="1"), answer("9", parent_tool_use_id="1"))
    seen, _ = read(call("1", name="Agent"), *own, answer("1"))
    assert (seen.reading.exposure, seen.reading.sources) == ("house", [])
    logs = (call("9", "docker logs web", parent_tool_use_id="1"), answer("9", parent_tool_use_id="1"))
    exposed, _ = read(call("1", name="Agent"), *logs, answer("1"))
    assert exposed.reading.sources == ["logs: web"]
    unseen, _ = read(call("1", name="Task"), answer("1"))
    assert unseen.reading.sources == ["subagent"]


def test_lines_that_cannot_be_read_expose() -> None:
    for line in (
        b"no json\n",
        b'{"type": ["user"]}\n',
        streams.line(type="user", message={"content": [{"type": "tool_result", "tool_use_id": 7, "content": "x"}]}),
        streams.line(type="user", message="x" if False else ["x"]),
        streams.line(type="assistant", message={"content": [{"type": "web_search_tool_result", "content": []}]}),
    ):
        state, _ = read(line)
        assert state.reading.exposure == "outside", line
    for line in (streams.line(type="something_new"), streams.result(num_turns=-1), "\n", streams.text("ok")):
        state, _ = read(line)
        assert state.reading.exposure == "nothing", line


def test_a_session_that_an_older_version_began_counts_as_exposed() -> None:
    assert begun((), unread=True).sources == ["unread lines"]
    assert begun((), unread=False).exposure == "nothing"
    assert begun(("task text",), unread=False).sources == ["task text"]


def test_a_result_of_the_house_is_kept_when_it_holds_a_marker() -> None:
    state, batch = read(call("1", "echo x"), answer("1", "[MEMORY:timing:web] x"), call("2", "df"), answer("2"))
    assert len(state.reading.results) == len(batch.results) == 1
    assert state.reading.read().results[0][1] == ""


def test_what_is_stored_is_bounded() -> None:
    reading = Reading()
    for number in range(1000):
        reading.call(f"{number}" * 100, (f"logs: {number}",))
    assert len(reading.calls) == MOST_CALLS
    for number in range(1000):
        reading.result(f"{number}" * 100, "x", 2**50 + number)
    assert len(reading.sources) == MOST_SOURCES + 1
    assert reading.sources[-1] == MORE
    assert len(reading.results) == MOST_RESULTS
    assert len(json.dumps(asdict(reading))) < 10_000
    assert reading.read().results[-1][1] in (MORE, "unknown call")


COMMANDS = st.sampled_from(["docker ps", "docker logs web", "curl example.org", "cat /tmp/x", "df", "'", "mystery"])
LINES = st.lists(
    st.one_of(
        st.builds(call, st.sampled_from("1234"), COMMANDS),
        st.builds(answer, st.sampled_from("1234"), st.sampled_from(["ok", "[MEMORY:timing:web] x"])),
        st.just(marker()),
        st.just("garbage\n"),
        st.builds(call, st.sampled_from("1234"), name=st.sampled_from(["Task", "WebFetch", "Read", "Write"])),
    ),
    max_size=20,
)


@given(LINES, st.integers(0, 20))
def test_a_replay_in_two_halves_gives_the_same_state(lines: list[str], half: int) -> None:
    whole, _ = read(*lines)
    first, _ = read(*lines[:half])
    stored = json.loads(json.dumps(asdict(first.reading)))
    state, batch, offset = State(reading=Reading(**stored)), Batch(), sum(map(len, lines[:half]))
    for line in lines[half:]:
        project(stream.parse(line.encode()), offset, state, batch, now=NOW)
        offset += len(line)
    assert asdict(state.reading) == asdict(whole.reading)


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "message", "content", "id", "tool_use_id", "name", "input"]), inner)).map(lambda value: json.dumps(value).encode()))  # fmt: skip # noqa: E501
def test_any_line_is_read(raw: bytes) -> None:
    state, _ = read(raw)
    json.dumps(asdict(state.reading))


def test_the_working_folder_is_the_first_that_the_log_states() -> None:
    state, _ = read(streams.init(cwd="/srv/homelab"), call("1", "cat /srv/homelab/a"), answer("1"))
    assert (state.reading.folder, state.reading.exposure) == ("/srv/homelab", "house")
    said = {"type": "user", "sessionId": "s", "message": {"content": "x"}}
    lines = [json.dumps({**said, "cwd": cwd}) + "\n" for cwd in ("/srv/homelab", "/srv/elsewhere")]
    transcript, _ = read(*lines)
    assert transcript.reading.folder == "/srv/homelab"


def test_the_results_of_one_line_are_compared_together() -> None:
    results = [
        {"type": "tool_result", "tool_use_id": "1", "content": "from outside"},
        {"type": "tool_result", "tool_use_id": "2", "content": "of the house"},
    ]
    both = streams.line(type="user", message={"role": "user", "content": results})
    _, batch = read(call("1", "docker logs web"), call("2", "df"), both)
    assert list(batch.results.values()) == [["from outside", "of the house"]]
    _, batch = read(call("1", "docker ps"), call("2", "df"), both)
    assert batch.results == {}
