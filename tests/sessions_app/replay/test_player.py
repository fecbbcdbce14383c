"""The player is a real process: it must be told apart from the CLI by nothing that the runner looks at."""

from __future__ import annotations

import ast
import contextlib
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessions_app.replay.pick import PLAYER
from sessions_app.replay.player import LONGEST_WAIT, Line, wait_before

pytestmark = pytest.mark.processes

OWN = "3f0d6c1e-5a3b-4c7e-9a57-1c2d3e4f5a6b"
RECORDED = "67cde26f-17e1-4348-b9d3-bfd936af657d"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def init(**more):
    return {"type": "system", "subtype": "init", "session_id": RECORDED, "cwd": "/srv/homelab", **more}


def said(text, at=START, **more):
    content = [{"type": "text", "text": text}]
    return {
        "type": "assistant",
        "message": {"id": "msg_1", "content": content},
        "session_id": RECORDED,
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        **more,
    }


def result(is_error=False, **more):
    return {"type": "result", "subtype": "success", "is_error": is_error, "session_id": RECORDED, **more}


@pytest.fixture
def stream(tmp_path):
    """Writes lines (dicts, or bytes as they are) to a file."""

    def write(*lines):
        file = tmp_path / "stream.jsonl"
        file.write_bytes(b"".join(x if isinstance(x, bytes) else json.dumps(x).encode() + b"\n" for x in lines))
        return file

    return write


def start(stream, speed="0", session_id=OWN):
    argv = [sys.executable, str(PLAYER), "--stream", str(stream), "--session-id", session_id, "--speed", speed]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def play(stream, prompt=b"Check the services.", **more):
    process = start(stream, **more)
    out, err = process.communicate(prompt, timeout=30)
    return process.returncode, out, err.decode()


def poll(found, *arguments):
    end = time.monotonic() + 20
    while not found(*arguments):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_recorded_stream_comes_out_under_the_session_id_given(stream):
    lines = [init(), said("All is well."), result(result="All is well.")]
    code, out, err = play(stream(*lines))
    played = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [line["type"] for line in played] == ["system", "assistant", "result"]
    assert {line["session_id"] for line in played} == {OWN}
    assert played[1]["message"] == lines[1]["message"]


def test_the_id_is_replaced_in_paths_and_nested_records_too(stream):
    nested = {"type": "system", "subtype": "task_notification", "session_id": RECORDED}
    nested["output_file"] = f"/run/claude/{RECORDED}/tasks/1.output"
    _, out, _ = play(stream(init(), nested, result()))
    assert RECORDED.encode() not in out
    assert json.loads(out.splitlines()[1])["output_file"] == f"/run/claude/{OWN}/tasks/1.output"


def test_a_short_recorded_id_is_replaced_only_as_the_id(stream):
    _, out, _ = play(stream({**said("a short name"), "session_id": "a"}, result()))
    line = json.loads(out.splitlines()[0])
    assert (line["session_id"], line["message"]["content"][0]["text"]) == (OWN, "a short name")


def test_key_order_and_unknown_types_and_garbage_are_played_as_recorded(stream):
    odd = {"zeta": 1, "session_id": RECORDED, "type": "never_seen", "alpha": 2.5}
    _, out, _ = play(stream(b"not json at all\n", init(), odd, b'{"type":"assist\n', result()))
    lines = out.splitlines()
    assert lines[0] == b"not json at all"
    assert list(json.loads(lines[2])) == ["zeta", "session_id", "type", "alpha"]
    assert lines[3] == b'{"type":"assist'


def test_half_a_surrogate_pair_survives(stream):
    _, out, _ = play(stream(init(), b'{"type":"assistant","session_id":"x","text":"\\ud83d"}\n', result()))
    assert json.loads(out.splitlines()[1])["text"] == "\ud83d"


def test_a_line_of_three_mebibytes_is_played_whole(stream):
    text = "x" * (3 << 20)
    _, out, _ = play(stream(init(), said(text), result()))
    assert json.loads(out.splitlines()[1])["message"]["content"][0]["text"] == text


def test_time_stamps_are_moved_to_now(stream):
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    _, out, _ = play(stream(init(), said("one"), said("two", START + timedelta(hours=1)), result()))
    stamps = [json.loads(line)["timestamp"] for line in out.splitlines() if b"timestamp" in line]
    assert len(stamps) == 2
    assert all(stamp.endswith("Z") for stamp in stamps)
    assert all(before <= datetime.fromisoformat(stamp) <= datetime.now(UTC) for stamp in stamps)


def test_lines_with_a_time_in_front_are_played_without_it(stream):
    code, out, _ = play(
        stream(
            b"2026-03-01T12:00:00.123456789Z\t" + json.dumps(init()).encode() + b"\n",
            b"2026-03-01T12:00:05.000000000Z\t" + json.dumps(result()).encode() + b"\n",
        )
    )
    assert code == 0
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["system", "result"]


def test_the_time_in_front_of_a_line_says_how_long_to_wait():
    first, second = (Line(b"2026-03-01T12:00:0%d.000000000Z\t{}" % second) for second in (1, 4))
    assert wait_before(first.at, second, 1) == 3.0


@pytest.mark.parametrize(
    ("seconds", "speed", "waited"),
    [(8, 1, 8.0), (8, 4, 2.0), (8, 0, 0.0), (3600, 1, LONGEST_WAIT), (3600, 360, 10.0), (-5, 1, 0.0)],
)
def test_the_wait_is_the_recorded_one_divided_by_the_speed(seconds, speed, waited):
    line = Line(json.dumps(said("later", START + timedelta(seconds=seconds))).encode())
    assert wait_before(START, line, speed) == waited


def test_a_line_without_a_time_follows_at_once():
    assert wait_before(START, Line(json.dumps(result()).encode()), 1) == 0.0


def test_lines_come_one_by_one_as_time_passes(stream):
    process = start(stream(init(), said("one"), said("two", START + timedelta(seconds=0.6)), result()), speed="1")
    process.stdin.close()
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    began = time.monotonic()
    assert b"two" in process.stdout.readline()
    assert time.monotonic() - began > 0.3
    process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=10) == 0


def test_nothing_is_said_before_the_prompt_has_been_read_to_its_end(stream):
    process = start(stream(init(), result()))
    assert process.stdin is not None
    process.stdin.write(b"x" * (2 << 20))
    process.stdin.flush()
    assert process.poll() is None
    out, _ = process.communicate(timeout=10)
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize(
    ("results", "code"),
    [([], 1), ([True], 1), ([False], 0), ([True, False], 0), ([False, True], 1)],
    ids=["no result", "an error", "success", "error then success", "success then error"],
)
def test_the_last_result_line_decides_the_exit_code(stream, results, code):
    assert play(stream(init(), *[result(is_error) for is_error in results]))[0] == code


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)], ids=lambda x: str(x)
)
def test_a_signal_ends_it_at_once_without_a_further_line(stream, number, code):
    later = START + timedelta(seconds=15)
    process = start(stream(init(), said("one"), said("two", later), result()), speed="1")
    process.stdin.close()
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(number)
    assert process.wait(timeout=10) == code
    assert process.stdout.read() == b""
    process.stdout.close()
    process.stderr.close()


def test_it_can_be_ended_while_it_waits_for_its_prompt(stream):
    process = start(stream(init(), result()))
    process.stdin.write(b"half a prompt")
    process.stdin.flush()
    # The handlers stand before anything is read; a process still starting dies of the signal itself.
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) in (143, -signal.SIGTERM)
    for pipe in (process.stdin, process.stdout, process.stderr):
        try:
            pipe.close()
        except BrokenPipeError:
            pass


def waits_in_its_pipe(file):
    """Bytes that nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, b"\0" * 4))[0]


def is_read(file):
    return waits_in_its_pipe(file) == 0


def test_no_signal_is_missed_wherever_in_its_reading_it_comes(stream):
    """A handler that only takes note misses some of these: they come between two reads."""
    recording = stream(init(), result())
    for _ in range(25):
        process = start(recording)
        try:
            process.stdin.write(b"x" * 4096)
            process.stdin.flush()
            poll(is_read, process.stdin)
            for number in range(400):
                os.write(process.stdin.fileno(), b"x")
                if number == 200:
                    process.send_signal(signal.SIGTERM)
        except BrokenPipeError:
            pass  # it has ended already
        try:
            assert process.wait(timeout=10) == 143
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.communicate(timeout=10)


def test_it_can_be_ended_while_nobody_reads_what_it_writes(stream):
    process = start(stream(init(), *[said("x" * 9000)] * 100, result()))
    process.stdin.close()
    poll(lambda: waits_in_its_pipe(process.stdout) > 50_000)  # the pipe is full
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 143
    process.stdout.close()
    process.stderr.close()


def test_a_missing_file_is_refused_on_stderr(tmp_path):
    code, out, err = play(tmp_path / "gone.jsonl")
    assert (code, out) == (1, b"")
    assert "gone.jsonl" in err


@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00\n", b"hello\nworld\n", b"[1, 2]\n", b'{"no": "type"}\n'])
def test_a_file_that_is_no_recording_is_refused_on_stderr(stream, content):
    code, out, err = play(stream(content))
    assert (code, out) == (1, b"")
    assert "not a stream-json recording" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "more", [{"speed": "fast"}, {"speed": "-1"}, {"speed": "nan"}, {"session_id": "me"}], ids=lambda x: str(x)
)
def test_a_wrong_flag_exits_with_1_like_the_cli(stream, more):
    code, out, err = play(stream(init(), result()), **more)
    assert (code, out) == (1, b"")
    assert err.startswith("error: argument")


def test_it_stands_on_the_standard_library_alone():
    tree = ast.parse(Path(PLAYER).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
