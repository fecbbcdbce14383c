"""Writes the demo's streams from their scenes: `python -m sessions_app.demo.record`. The files are committed.

No Django: the streams are data, and a test holds that they are what the scenes say.
"""

from __future__ import annotations

from pathlib import Path

from sessions_app.demo.scenes import SCENES

STREAMS = Path(__file__).resolve().parent / "streams"


def write(folder: Path = STREAMS) -> list[Path]:
    """Writes every scene into `folder`/<agent>/NN-name.jsonl; the files written."""
    written = []
    for scene in SCENES:
        path = folder / scene.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(scene.text(), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    write()
