"""Write logs of sessions in the CLI's shapes and of any size."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import UUID

from tests.benchmarks import facts
from tests.support import streams

MARKED = 200
"""One line of so many has markers: a memory and an event."""

# Characters of what a tool printed. The CLI writes it twice: as the model sees it, and as `tool_use_result`.
RESULT_SIZES = (200, 500, 1000, 2000, 2000, 4000, 4000, 8000, 16000)
USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 1234,
    "cache_read_input_tokens": 24567,
    "output_tokens": 2,
    "service_tier": "standard",
}
OUTPUT = (
    "CONTAINER ID   IMAGE                  STATUS                    PORTS\n",
    "a1b2c3d4e5f6   jellyfin/jellyfin:10   Up 3 days (healthy)       0.0.0.0:8096->8096/tcp\n",
    '2026-05-01T12:00:00.123Z level=warn msg="slow query" duration=1.284s query="SELECT id FROM items"\n',
    '{"level":"info","ts":1777636800.12,"msg":"handled request","status":200,"uri":"/healthz"}\n',
    "[12:00:00] [ERR] Jellyfin: Error processing request “/web/index.html” — client closed connection\n",
    "\tat Jellyfin.Server.Startup.Configure(IApplicationBuilder app) in /src/Startup.cs:line 142\n",
    "drwxr-xr-x  2 root root 4096 May  1 12:00 /srv/media/films\n",
)
WORDS = "I will look at the container's log next, since the health check was slow twice in the last hour. "


@dataclass(frozen=True, slots=True)
class Written:
    """A log: bytes, lines, and how many of them have markers."""

    size: int
    lines: int
    marked: int


def write(path: Path, size: int, lines: Iterator[str]) -> Written:
    """Fill `path` from `lines` until it has `size` bytes."""
    written = count = marked = 0
    with path.open("wb") as log:
        for line in lines:
            data = line.encode()
            log.write(data)
            written += len(data)
            count += 1
            marked += "[MEMORY:" in line
            if written >= size:
                break
    return Written(written, count, marked)


def realistic(first: int) -> Iterator[str]:
    """Yield the lines of a session that investigates: text, tool calls, results. Memories from `first` on."""
    chance = random.Random(first)  # the same log each time
    pool = [_result(chance) for _ in range(300)]
    yield streams.init(tools=["Bash", "Read", "Grep", "Glob", "Edit", "Write"] * 8, uuid=_uuid(chance))
    number = 0
    while True:
        for place in range(MARKED):
            if place == MARKED - 1:
                yield _says(_marked(first + number), chance)
                number += 1
            elif place % 3 == 0:
                yield _says(WORDS * chance.randint(1, 6), chance)
            elif place % 3 == 1:
                yield _calls(f"docker logs --tail {place} service-{place:02}", chance)
            else:
                yield chance.choice(pool)


def chatter() -> Iterator[str]:
    """The smallest lines that are stored, one entry each."""
    while True:
        yield streams.text("ok")


def noise() -> Iterator[str]:
    """Yield the pieces of streamed text: lines that are read and skipped."""
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}}
    while True:
        yield streams.line(type="stream_event", event=delta)


def blank() -> Iterator[str]:
    """The shortest possible line."""
    while True:
        yield "\n"


def sample(lines: Iterator[str], count: int) -> str:
    return "".join(islice(lines, count))


def _marked(number: int) -> str:
    candidate = facts.candidate(number)
    scope = ":".join(part for part in (candidate.category, candidate.service) if part)
    return f"Checked.\n[MEMORY:{scope}] {candidate.observation}\n[EVENT:info] Check {number} is done\nMoving on."


def _says(words: str, chance: random.Random) -> str:
    content = [{"type": "text", "text": words}]
    return _message("assistant", content, chance)


def _calls(command: str, chance: random.Random) -> str:
    content = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}]
    return _message("assistant", content, chance)


def _message(kind: str, content: list[dict[str, object]], chance: random.Random) -> str:
    message = {
        "id": "msg_01ABCDEFGHJKLMNPQRSTUVWX",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }
    return streams.line(type=kind, message=message, parent_tool_use_id=None, uuid=_uuid(chance))


def _result(chance: random.Random) -> str:
    size, output = chance.choice(RESULT_SIZES), ""
    while len(output) < size:
        output += chance.choice(OUTPUT)
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output, "is_error": False}
    return streams.line(
        type="user",
        message={"role": "user", "content": [block]},
        parent_tool_use_id=None,
        uuid=_uuid(chance),
        tool_use_result={"stdout": output, "stderr": "", "interrupted": False, "isImage": False},
    )


def _uuid(chance: random.Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))
