"""The brief of a session's task: its id and title, its paths and limits, and the operator's note. Pure.

The task's description is `Session.task`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sessions_app.errors import InvalidBrief

LONGEST = {"task_id": 100, "title": 300, "note": 20_000, "prohibited": 1000}
LONGEST_PATH = 300
MOST = 100
"""Entries of one list."""

TEXTS = ("task_id", "title", "note")
PATHS = ("write_scope", "excluded_paths", "read_first")
LISTS = (*PATHS, "prohibited")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
FIX = "Paths and globs are relative to the repository, such as src/core/** or docs/*.md."


@dataclass(frozen=True, slots=True)
class Brief:
    """Paths are relative to the repository. `write_scope` and `excluded_paths` are globs with `*`, `**` and `?`."""

    task_id: str = ""
    title: str = ""
    write_scope: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    read_first: tuple[str, ...] = ()
    prohibited: tuple[str, ...] = ()
    note: str = ""

    def as_record(self) -> dict[str, Any]:
        """Return what `Session.brief` stores: the fields that are not empty."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items() if value
        }


def checked(given: Mapping[str, Any]) -> Brief:
    """Return the brief of what was asked for. Raises InvalidBrief, which names the field."""
    unknown = sorted(set(given) - {*TEXTS, *LISTS})
    if unknown:
        raise InvalidBrief(unknown[0], "there is no such field.", f"Fields are {', '.join((*TEXTS, *LISTS))}.")
    values: dict[str, Any] = {name: _text(name, given.get(name)) for name in TEXTS}
    values |= {name: _list(name, given.get(name)) for name in LISTS}
    return Brief(**values)


def read(stored: Mapping[str, Any]) -> Brief:
    """Return the brief of a stored session; what is not as it should be is left out."""
    values: dict[str, Any] = {name: value for name in TEXTS if isinstance(value := stored.get(name), str)}
    values |= {
        name: tuple(one for one in value if isinstance(one, str))
        for name in LISTS
        if isinstance(value := stored.get(name), list)
    }
    return Brief(**values)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidBrief(name, "it is no text.")
    text = value.strip()
    if len(text) > LONGEST[name]:
        raise InvalidBrief(name, f"it has {len(text):,} characters; at most {LONGEST[name]:,} are allowed.")
    if name != "note" and CONTROL.search(text):
        raise InvalidBrief(name, "it has a line break or a control character.", "Give one line.")
    return text


def _list(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InvalidBrief(name, "it is no list of texts.")
    if len(value) > MOST:
        raise InvalidBrief(name, f"it has {len(value):,} entries; at most {MOST} are allowed.")
    entries = (_entry(name, one) for one in value)
    return tuple(dict.fromkeys(one for one in entries if one))


def _entry(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidBrief(name, f"{str(value)[:40]!r} is no text.")
    text = value.strip()
    longest = LONGEST_PATH if name in PATHS else LONGEST[name]
    if len(text) > longest:
        raise InvalidBrief(name, f"an entry has {len(text):,} characters; at most {longest} are allowed.")
    if CONTROL.search(text):
        raise InvalidBrief(name, f"{text[:40]!r} has a line break or a control character.")
    if name in PATHS and (wrong := _wrong_path(text, globs=name != "read_first")):
        raise InvalidBrief(name, f"{text[:80]!r} {wrong}.", FIX)
    return text


def _wrong_path(path: str, *, globs: bool) -> str:
    """Say what is wrong with a path or glob; empty when it is right. Brackets are letters, as in names of files."""
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        return "is not relative to the repository"
    if "\\" in path:
        return "has a backslash; folders are separated by /"
    if ".." in path.split("/"):
        return "leads out of the repository with .."
    if "***" in path:
        return "has more than two stars together"
    if any("**" in part and part != "**" for part in path.split("/")):
        return "has ** beside other characters; ** stands alone between slashes"
    if not globs and re.search(r"[*?]", path):
        return "is a pattern; a file to read has a name"
    return ""
