"""Play a recorded stream-json file as if the Claude Code CLI ran, with its session id, times and exit codes.

A script. It imports only the standard library, so that it starts fast.
"""

from __future__ import annotations

import _thread
import argparse
import contextlib
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

LONGEST_WAIT = 20.0
"""Most seconds of a pause; longer recorded pauses are shortened."""

NAMES_ITSELF = 16
"""Fewest characters of an id that is replaced wherever it occurs; a shorter one may be part of other words."""

EXITS = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 0}
"""The CLI's exit codes after a signal."""


class Garbled(Exception):
    """The file is not a recorded stream; the text is for stderr."""


class Line:
    """One line of the recording: its bytes, its JSON object (None when it holds none), its time (None: unknown)."""

    __slots__ = ("at", "raw", "record")

    def __init__(self, raw: bytes) -> None:
        self.at: datetime | None = None
        self.raw = raw
        self.record: dict[str, Any] | None = None
        body = raw
        stamp, tab, rest = raw.partition(b"\t")
        if tab and len(stamp) <= 40:
            self.at = moment(stamp.decode("ascii", "replace"))
            if self.at is not None:
                self.raw = body = rest
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(body)
            if isinstance(value, dict):
                self.record = value
        if self.at is None and self.record is not None:
            self.at = moment(self.record.get("timestamp"))


def moment(text: Any) -> datetime | None:
    """Parse an RFC 3339 time; None when the text is not one or has no time zone."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None


def recording(file: BinaryIO, name: str) -> Iterator[Line]:
    """Yield the lines of a recording. Raises Garbled first when none of them is a JSON object with a type."""
    held: list[Line] = []
    sound = False
    for raw in file:
        line = Line(raw)
        if not sound:
            held.append(line)
            sound = line.record is not None and "type" in line.record
            if not sound:
                continue
            yield from held
            held.clear()
            continue
        yield line
    if not sound:
        raise Garbled(
            f"{name} is not a stream-json recording: none of its {len(held)} lines is a JSON object with a type."
        )


class Player:
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.recorded: set[str] = set()
        self.good = False

    def played(self, line: Line, now: datetime) -> bytes:
        """Return the bytes to write for `line`, with this session's id everywhere and `now` as its timestamp.

        A line that is not JSON is passed on: the CLI writes such lines too.
        """
        record = line.record
        if record is None:
            return self._named(line.raw)
        recorded = record.get("session_id")
        if isinstance(recorded, str) and recorded:
            record["session_id"] = self.session_id
            if len(recorded) >= NAMES_ITSELF:
                self.recorded.add(recorded)
        if record.get("type") == "result":
            self.good = record.get("is_error") is False
        if "timestamp" in record:
            record["timestamp"] = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can escape and UTF-8 cannot hold
            data = json.dumps(record, separators=(",", ":")).encode()
        return self._named(data) + (b"\n" if line.raw.endswith(b"\n") else b"")

    def _named(self, written: bytes) -> bytes:
        for recorded in self.recorded:
            written = written.replace(recorded.encode(), self.session_id.encode())
        return written


def wait_before(previous: datetime | None, line: Line, speed: float) -> float:
    """Return the seconds to wait before `line`; 0 at speed 0, without a time, or when time goes backwards."""
    if not speed or previous is None or line.at is None:
        return 0.0
    return min(max((line.at - previous).total_seconds() / speed, 0.0), LONGEST_WAIT)


def play(stream: Path, session_id: str, speed: float, out: BinaryIO) -> int:
    """Write the recording to `out`, flushed line by line. Return the exit code of the CLI."""
    player = Player(session_id)
    previous: datetime | None = None
    with stream.open("rb") as file:
        for line in recording(file, stream.name):
            wait = wait_before(previous, line, speed)
            if wait:
                time.sleep(wait)
            previous = line.at or previous
            out.write(player.played(line, datetime.now(UTC)))
            out.flush()
    return 0 if player.good else 1


def end_on_signals() -> None:
    """Let a signal end the process, also while it waits for a read, a write or the next line.

    A Python handler would run only after a blocking read returns, which may be never.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, EXITS)
    _thread.start_new_thread(_leave, ())


def _leave() -> NoReturn:
    """End at once, without flushing: the buffer holds an unfinished line."""
    os._exit(EXITS[signal.Signals(signal.sigwait(EXITS))])


class Parser(argparse.ArgumentParser):
    """Exit with 1 on wrong usage, like the CLI."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {message}\n")
        raise SystemExit(1)


def speed_of(raw: str) -> float:
    speed = float(raw)
    if not 0 <= speed < float("inf"):
        raise ValueError
    return speed


def main(argv: list[str] | None = None) -> int:
    end_on_signals()
    parser = Parser(description="Plays a recorded stream-json file as if the CLI ran.")
    parser.add_argument("--stream", required=True, type=Path, help="the recording")
    parser.add_argument("--session-id", required=True, type=uuid.UUID, help="the id to play it under")
    parser.add_argument("--speed", type=speed_of, default=1.0, help="1 = as recorded, 2 = twice as fast, 0 = at once")
    options = parser.parse_args(argv)
    while not sys.stdin.isatty() and sys.stdin.buffer.read(1 << 20):
        pass  # the prompt: the CLI reads all of it before it writes
    try:
        return play(options.stream, str(options.session_id), options.speed, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(1)  # the reader is gone; flushing at exit would fail again
    except (OSError, Garbled) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
