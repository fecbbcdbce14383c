"""Choose the recorded stream that a session plays: the files of its agent's folder, in turn."""

from __future__ import annotations

from pathlib import Path

from sessions_app.errors import StreamNotFound
from sessions_app.models import Agent

PACKAGE = Path(__file__).resolve().parent.parent
"""Relative paths of streams start here, so that the demo's agents work after the checkout is moved."""

PLAYER = PACKAGE / "replay" / "player.py"


def next_stream(agent_or_path: Agent | Path | str, played: int) -> Path:
    """Return the stream to play after `played` others: a file itself; of a folder its *.jsonl files in turn, by name.

    Takes an agent (its `replay_stream`) or a path; a relative one is under the package `sessions_app`. Raises
    StreamNotFound when no path is given, the path does not exist, or the folder holds no stream.
    """
    source = agent_or_path.replay_stream if isinstance(agent_or_path, Agent) else str(agent_or_path)
    whose = f"Agent {agent_or_path.slug}" if isinstance(agent_or_path, Agent) else "A replay session"
    if not source.strip():
        raise StreamNotFound(
            f"{whose} names no recorded stream.", "Give it a file or a folder of .jsonl files as its replay stream."
        )
    path = PACKAGE / Path(source).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        raise StreamNotFound(
            f"{whose} plays {source!r}, and there is no such file or folder (looked for {path}).",
            "Give the full path of a recorded stream, or of a folder of them.",
        )
    streams = sorted(file for file in path.glob("*.jsonl") if file.is_file())
    if not streams:
        raise StreamNotFound(
            f"{whose} plays {source!r}, and that folder holds no .jsonl file.",
            f"Put recorded streams into {path}, or name another folder.",
        )
    return streams[played % len(streams)]


def name_of(stream: Path) -> str:
    return str(stream.relative_to(PACKAGE) if stream.is_relative_to(PACKAGE) else stream)
