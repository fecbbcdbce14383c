"""Logs of any known shape → lines of stream-json. Pure but for reading the given lines; memory stays flat.

Known shapes: bare stream-json; `RFC3339Nano<TAB>{json}`; chunked logs of `{"type":"stdout","data":"…"}`, whose
chunks do not end at line ends. They may be mixed within a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sessions_app.runner.stream import timestamp

STAMPED = re.compile(rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\t ]*)\t(.*)$", re.DOTALL)
CHUNK_TYPES = frozenset({"stdout", "stderr"})
STREAM_TYPES = frozenset({"system", "assistant", "user", "result", "stream_event", "rate_limit_event"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """One line of stream-json (with its line end) and what was read of it.

    `known`: it is of a type the CLI writes. `cut`: it is the log's last line and breaks off in the middle.
    """

    data: bytes
    cli_session_id: str = ""
    at: str = ""
    known: bool = False
    cut: bool = False


def decode(lines: Iterable[bytes]) -> Iterator[Decoded]:
    """Every line of a log as stream-json. A time stamp in front of a line becomes its `timestamp`.

    What cannot be read is passed on as it is, for the ingest to count.
    """
    rest, rest_at = b"", ""
    for raw in lines:
        stamp, body = _split(raw)
        record = _json(body)
        if record is not None and record.get("type") in CHUNK_TYPES and isinstance(record.get("data"), str):
            if record["type"] == "stderr":
                continue
            at = stamp or (record.get("timestamp") if isinstance(record.get("timestamp"), str) else "") or ""
            rest += record["data"].encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
            *whole, rest = rest.split(b"\n")
            for line in whole:
                if line.strip():
                    yield _line(line, at or rest_at)
            rest_at = at
            continue
        if body.strip():
            yield _line(body, stamp, record, ended=raw.endswith(b"\n"))
    if rest.strip():
        yield _line(rest, rest_at, ended=False)


def _split(raw: bytes) -> tuple[str, bytes]:
    found = STAMPED.match(raw)
    if found and timestamp(found[1].decode("ascii", "replace")):
        return found[1].decode("ascii"), found[2]
    return "", raw


def _json(body: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _line(body: bytes, at: str, record: dict[str, Any] | None = None, *, ended: bool = True) -> Decoded:
    if record is None:
        inner, body = _split(body)
        at = inner or at
        record = _json(body)
    if record is None:
        return Decoded(body.rstrip(b"\r\n") + b"\n", cut=not ended)
    data = body.strip()
    own = record.get("timestamp")
    if at and not (isinstance(own, str) and timestamp(own)):
        # json.dumps escapes what is not ASCII, so whatever the line held it can be written again.
        data = json.dumps({**record, "timestamp": at}).encode()
    session = record.get("session_id")
    kind = record.get("type")
    return Decoded(
        data + b"\n",
        session if isinstance(session, str) else "",
        own if isinstance(own, str) and timestamp(own) else at,
        isinstance(kind, str) and kind in STREAM_TYPES,
    )
