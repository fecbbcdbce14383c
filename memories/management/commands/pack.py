"""`manage.py pack`: carry a project's approved memories to another installation."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user
from claudeops.lib.diff import GONE, NEW, Piece
from claudeops.lib.files import whole_file
from memories.exchange.packs import LARGEST, Difference, Pack, apply_pack, difference, make_pack, read_pack
from memories.lifecycle.projects import find_project

SHOWN = 20
"""Memories of each kind that the text names; --json has all."""


def _export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--project", required=True, metavar="SLUG", help="whose approved memories")
    parser.add_argument("file", metavar="FILE", help="the pack to write")


def _diff_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a pack that export wrote")
    parser.add_argument("--into", required=True, metavar="SLUG", help="the project to compare with")


def _import_arguments(parser: ArgumentParser) -> None:
    _diff_arguments(parser)
    parser.add_argument("--apply", action="store_true", help="store it; without it only the difference is printed")
    parser.add_argument("--approve", action="store_true", help="also approve, in your name, what the gate allows")
    parser.add_argument("--by", default="", help="the actor of the changes (default: your account)")


class Command(VerbCommand):
    help = "Memory packs: a project's approved memories as one file."
    noun = "pack"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "export": Verb("Write the approved memories of a project to a file.", self.export, _export_arguments),
            "diff": Verb("Say what an import would change.", self.diff, _diff_arguments),
            "import": Verb("Take a pack in: first the difference, then --apply.", self.import_, _import_arguments),
        }

    def export(self, project: str, file: str) -> Result:
        content = make_pack(find_project(project))
        try:
            with whole_file(Path(file)) as out:
                out.write(json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise Refusal("file", f"{file} cannot be written: {error.strerror}.") from None
        count = len(content["memories"])
        return Result(
            {"file": file, "memories": count, "sha256": content["sha256"]},
            f"Approved memories of {project} in {file}: {count:,}.\nSHA-256: {content['sha256']}",
            [NextAction(f"manage.py pack diff {file} --into SLUG", "compare it with a project")],
        )

    def diff(self, file: str, into: str) -> Result:
        pack = _read(file)
        found = difference(pack, find_project(into))
        return Result(_data(pack, found), _text(pack, found, into))

    def import_(self, file: str, into: str, apply: bool, approve: bool, by: str) -> Result:
        project, pack = find_project(into), _read(file)
        if not apply:
            if approve:
                raise Refusal("usage", "--approve needs --apply.", "Look at the difference first, then give both.")
            found = difference(pack, project)
            text = _text(pack, found, into)
            more = (
                []
                if found.is_empty
                else [NextAction(f"manage.py pack import {file} --into {into} --apply", "store it")]
            )
            return Result(
                _data(pack, found), text + ("" if found.is_empty else "\nNothing was stored; add --apply."), more
            )
        done = apply_pack(pack, project, by=by or current_user(), approve=approve)
        text = f"{done.created:,} new, {done.changed:,} changed, {done.held:,} held for review, {done.same:,} the same."
        if done.left:
            text += f" {done.left:,} kept their text, because the gate holds the pack's."
        if done.purged:
            text += f" {done.purged:,} were left out, since a person had their texts purged here."
        see = [NextAction(f"manage.py memory list --project {into} --held", "see what waits for review")]
        return Result(asdict(done), text, see if done.held else ())


def _read(file: str) -> Pack:
    path = Path(file)
    try:
        with path.open("rb") as opened:
            content = opened.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise Refusal("file", f"{file} is larger than {LARGEST // 1024**2} MB.", "It is not a memory pack.")
        return read_pack(content.decode())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Refusal("file", f"{file} cannot be read: {why}.") from None


def _data(pack: Pack, found: Difference) -> dict[str, Any]:
    return {
        "project": pack.project,
        "sha256": pack.sha256,
        "same": found.same,
        "new": [
            one.model_dump(mode="json")
            | {"contradicts": found.conflicts.get(one.uuid, []), "held": found.held.get(one.uuid, "")}
            for one in found.new
        ],
        "changed": [
            {
                "id": edited.memory_id,
                "before": dict(edited.before),
                "after": {name: getattr(edited.packed, name) for name in edited.before},
                "held": found.held.get(edited.packed.uuid, ""),
            }
            for edited in found.changed
        ],
        "missing": found.missing,
        "purged": [str(uuid) for uuid in found.purged],
    }


def _text(pack: Pack, found: Difference, into: str) -> str:
    lines = [
        f"Pack of {pack.project}, memories in it: {len(pack.memories):,}. In {into}: {len(found.new):,} new, "
        f"{len(found.changed):,} changed, {len(found.same):,} the same, {len(found.missing):,} only here (they stay)."
    ]
    for one in found.new[:SHOWN]:
        lines.append(f"+ [{one.category}] {one.observation}")
        if opposed := found.conflicts.get(one.uuid):
            lines.append(f"    contradicts memory {', '.join(map(str, opposed))}")
        if reason := found.held.get(one.uuid):
            lines.append(f"    held for review: {reason}")
    lines += _more(len(found.new), "new")
    for edited in found.changed[:SHOWN]:
        names = ", ".join(edited.before)
        text = _marked(edited.text) if "observation" in edited.before else edited.packed.observation
        lines.append(f"~ memory {edited.memory_id} ({names}): {text}")
        if reason := found.held.get(edited.packed.uuid):
            lines.append(f"    keeps its text: {reason}")
    lines += _more(len(found.changed), "changed")
    if found.purged:
        lines.append(f"{len(found.purged):,} left out, since a person had their texts purged here.")
    return "\n".join(lines)


def _more(count: int, what: str) -> list[str]:
    return [f"  and {count - SHOWN:,} more {what}; --json names all."] if count > SHOWN else []


def _marked(pieces: list[Piece]) -> str:
    around = {GONE: ("[-", "-]"), NEW: ("{+", "+}")}
    return "".join(
        f"{around[piece.kind][0]}{piece.text}{around[piece.kind][1]}" if piece.kind in around else piece.text
        for piece in pieces
    )
