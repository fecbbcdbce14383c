"""Convert logs of the known formats to lines of stream-json. Pure; reads line by line, so memory stays flat.

Formats: bare stream-json; `RFC3339Nano<TAB>{json}`; chunks `{"type":"stdout","data":"…"}`, which may end anywhere in
a line; transcripts of the CLI, whose lines stay as they are. A file may mix them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sessions_app.runner import accept, stream

STAMPED = re.compile(rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\t ]*)\t(.*)$", re.DOTALL)
CHUNK_TYPES = ("stdout", "stderr")

BARE, WITH_TIMES, CHUNKS, TRANSCRIPT = "stream-json", "stream-json with time stamps", "chunks", "transcript"


@dataclass(frozen=True, slots=True)
class Decoded:
    """One line of stream-json with its line end. `known`: the CLI writes its type. `cut`: the last, incomplete line.

    `format` is empty for a line that is not known; `id` is the line's own identity (`uuid`), where it has one.
    """

    data: bytes
    cli_session_id: str = ""
    at: str = ""
    known: bool = False
    cut: bool = False
    format: str = ""
    id: str = ""


def decode(lines: Iterable[bytes]) -> Iterator[Decoded]:
    """Convert every line of a log; malformed ones stay. A time stamp before a line becomes its `timestamp`."""
    rest, rest_at = b"", ""
    for raw in lines:
        stamp, body = _split(raw)
        record = accept.load(body, [])
        if record is not None and record.get("type") in CHUNK_TYPES and isinstance(record.get("data"), str):
            if record["type"] == "stderr":
                continue
            at = stamp or (record.get("timestamp") if isinstance(record.get("timestamp"), str) else "") or ""
            rest += record["data"].encode("utf-8", "replace")
            *whole, rest = rest.split(b"\n")
            for line in whole:
                if line.strip():
                    yield _line(line, at or rest_at, CHUNKS)
            rest_at = at
            continue
        if body.strip():
            yield _line(body, stamp, WITH_TIMES if stamp else BARE, record, ended=raw.endswith(b"\n"))
    if rest.strip():
        yield _line(rest, rest_at, CHUNKS, ended=False)


def _split(raw: bytes) -> tuple[str, bytes]:
    match = STAMPED.match(raw)
    if match and accept.timestamp(match[1].decode("ascii", "replace")):
        return match[1].decode("ascii"), match[2]
    return "", raw


def _line(body: bytes, at: str, form: str, record: dict[str, Any] | None = None, *, ended: bool = True) -> Decoded:
    if record is None:
        inner, body = _split(body)
        at = inner or at
        record = accept.load(body, [])
    if record is None:
        return Decoded(body.rstrip(b"\r\n").replace(b"\n", b" ") + b"\n", cut=not ended)
    data = body.strip()
    own = record.get("timestamp")
    if isinstance(own, str) and accept.timestamp(own):
        at = own
    elif at:
        data = _with_time(data, record, at)
    is_known, line_id = stream.is_known(record.get("type"), record), record.get("uuid")
    return Decoded(
        data + b"\n",
        stream.session_of(record),
        at,
        is_known,
        format="" if not is_known else TRANSCRIPT if stream.is_transcript(record) else form,
        id=line_id if isinstance(line_id, str) else "",
    )


def _with_time(data: bytes, record: dict[str, Any], at: str) -> bytes:
    try:
        # json.dumps escapes everything that is not ASCII, lone surrogates too, so encoding cannot fail.
        return json.dumps({**record, "timestamp": at}).encode()
    except RecursionError:
        return data
