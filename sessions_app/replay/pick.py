"""Which recorded stream a session plays: the files of its agent's folder, in turn.

Pure but for looking at the folder: no database. What is counted as played is the caller's business.
"""

from __future__ import annotations

from pathlib import Path

from sessions_app.errors import StreamNotFound
from sessions_app.models import Agent

PACKAGE = Path(__file__).resolve().parent.parent
"""A stream's relative path starts here, so that an agent of the demo survives moving the checkout."""

PLAYER = PACKAGE / "replay" / "player.py"
"""The script that plays it."""


def next_stream(agent_or_path: Agent | Path | str, played: int) -> Path:
    """The stream to play after `played` ones: a file as it is, of a folder its *.jsonl files in turn, by name.

    Takes an agent (its `replay_stream`) or a path; a relative one is under the package `sessions_app`.
    Raises StreamNotFound when nothing is named, nothing is there, or the folder holds no stream.
    """
    given = agent_or_path.replay_stream if isinstance(agent_or_path, Agent) else str(agent_or_path)
    whose = f"Agent {agent_or_path.slug}" if isinstance(agent_or_path, Agent) else "A replay session"
    if not given.strip():
        raise StreamNotFound(
            f"{whose} names no recorded stream.", "Give it a file or a folder of .jsonl files as its replay stream."
        )
    path = PACKAGE / Path(given).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        raise StreamNotFound(
            f"{whose} plays {given!r}, and there is no such file or folder (looked for {path}).",
            "Give the full path of a recorded stream, or of a folder of them.",
        )
    streams = sorted(file for file in path.glob("*.jsonl") if file.is_file())
    if not streams:
        raise StreamNotFound(
            f"{whose} plays {given!r}, and that folder holds no .jsonl file.",
            f"Put recorded streams into {path}, or name another folder.",
        )
    return streams[played % len(streams)]


def name_of(stream: Path) -> str:
    """How a stream is named on a session: relative to the package when it is the package's own."""
    return str(stream.relative_to(PACKAGE) if stream.is_relative_to(PACKAGE) else stream)
