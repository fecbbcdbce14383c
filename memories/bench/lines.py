"""JSON Lines in and out: the sets that a bench reads, the answers it writes. Knows no memory."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memories.errors import InvalidSet

GIVE_FOLDER = "Give a path in a folder that exists."


def read_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line that is not empty.

    Raises InvalidSet with the line's number when the file cannot be read or a line holds no JSON object.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _object(path, number, line)
    except OSError as error:
        raise InvalidSet(
            f"{path} cannot be read: {error.strerror or error}.", "Give the path of a JSONL file."
        ) from None
    except UnicodeDecodeError:
        raise InvalidSet(f"{path} is no UTF-8 text.", "Give the path of a JSONL file.") from None


def _object(path: str | Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InvalidSet(f"{path}, line {number}: no JSON ({error}).", "One JSON object a line.") from None
    if not isinstance(found, dict):
        raise InvalidSet(f"{path}, line {number}: {type(found).__name__}, not an object.", "One JSON object a line.")
    return found


def text_of(row: Mapping[str, Any], name: str, where: str, *, optional: bool = False) -> str:
    """The field `name` as text, '' for an optional one that is missing or null. Raises InvalidSet."""
    value = row.get(name)
    if value is None and optional:
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and name == "id":
        return str(value)
    if not isinstance(value, str) or not (optional or value.strip()):
        found = f"is {value!r}; a text is needed" if name in row else "is missing"
        raise InvalidSet(f"{where}: {name!r} {found}.")
    return value


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes the rows, whole or not at all; how many. Raises InvalidSet when the file cannot be written."""
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for row in rows:
            count += 1
            yield json.dumps(row, ensure_ascii=False) + "\n"

    _write(path, lines())
    return count


def write_text(path: str | Path, text: str) -> None:
    """Writes a file, whole or not at all. Raises InvalidSet when it cannot be written."""
    _write(path, [text])


def writable(path: str | Path | None) -> None:
    """Raises InvalidSet when a file could not be written there: before an hour's work, not after it."""
    if path is None:
        return
    folder = Path(path).parent
    if Path(path).is_dir():
        raise InvalidSet(f"{path} cannot be written: it is a folder.", "Give the path of a file.")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidSet(f"{path} cannot be written: there is no folder {folder} to write to.", GIVE_FOLDER)


def _write(path: str | Path, pieces: Iterable[str]) -> None:
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(pieces)
        part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise InvalidSet(f"{path} cannot be written: {error.strerror or error}.", GIVE_FOLDER) from None
