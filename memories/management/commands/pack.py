"""`manage.py pack`: carry a project's approved memories to another installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from claudeops.lib.cli import Refusal, Result, VerbCommand, arg, by, verb, writing
from claudeops.lib.diff import marked
from memories.exchange.packs import LARGEST, Difference, Pack, apply_pack, difference, make_pack, read_pack
from memories.lifecycle.projects import find_project

SHOWN = 20
"""Memories of each kind that the text names; --json has all."""


class Command(VerbCommand):
    help = "Memory packs: a project's approved memories as one file."

    @verb
    def export(
        self, file: str = arg("the pack to write"), *, project: str = arg("whose approved memories", metavar="SLUG")
    ) -> Result:
        """Write the approved memories of a project to a file."""
        content = make_pack(find_project(project))
        with writing(file) as out:
            out.write(json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
        count = len(content["memories"])
        return Result(
            {"file": file, "memories": count, "sha256": content["sha256"]},
            f"Approved memories of {project} in {file}: {count:,}.\nSHA-256: {content['sha256']}",
            {f"manage.py pack diff {file} --into SLUG": "compare it with a project"},
        )

    @verb
    def diff(
        self,
        file: str = arg("a pack that export wrote"),
        *,
        into: str = arg("the project to compare with", metavar="SLUG"),
    ) -> Result:
        """Say what an import would change."""
        pack = _read(file)
        changes = difference(pack, find_project(into))
        return Result(_data(pack, changes), _text(pack, changes, into))

    @verb
    def import_(
        self,
        file: str = arg("a pack that export wrote"),
        *,
        into: str = arg("the project to compare with", metavar="SLUG"),
        apply: bool = arg("store it; without it only the difference is printed"),
        approve: bool = arg("also approve, in your name, what the gate allows"),
        by: str = by("the actor of the changes (default: your account)"),
    ) -> Result:
        """Take a pack in: first the difference, then --apply."""
        project, pack = find_project(into), _read(file)
        if not apply:
            if approve:
                raise Refusal("usage", "--approve needs --apply.", "Look at the difference first, then give both.")
            diff = difference(pack, project)
            text = _text(pack, diff, into)
            if diff.is_empty:
                return Result(_data(pack, diff), text)
            more = {f"manage.py pack import {file} --into {into} --apply": "store it"}
            return Result(_data(pack, diff), f"{text}\nNothing was stored; add --apply.", more)
        result = apply_pack(pack, project, by=by, approve=approve)
        text = f"{result.created:,} new, {result.changed:,} changed, {result.held:,} held for review, "
        text += f"{result.same:,} the same."
        if result.left:
            text += f" {result.left:,} kept their text, because the gate holds the pack's."
        if result.purged:
            text += f" {result.purged:,} were left out, since a person had their texts purged here."
        see = {f"manage.py memory list --project {into} --held": "see what waits for review"}
        return Result(result, text, see if result.held else {})


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


def _data(pack: Pack, diff: Difference) -> dict[str, Any]:
    return {
        "project": pack.project,
        "sha256": pack.sha256,
        "same": diff.same,
        "new": [
            one.model_dump(mode="json")
            | {"contradicts": diff.conflicts.get(one.uuid, []), "held": diff.held.get(one.uuid, "")}
            for one in diff.new
        ],
        "changed": [
            {
                "id": edited.memory_id,
                "before": dict(edited.before),
                "after": {name: getattr(edited.packed, name) for name in edited.before},
                "held": diff.held.get(edited.packed.uuid, ""),
            }
            for edited in diff.changed
        ],
        "missing": diff.missing,
        "purged": [str(uuid) for uuid in diff.purged],
    }


def _text(pack: Pack, diff: Difference, into: str) -> str:
    lines = [
        f"Pack of {pack.project}, memories in it: {len(pack.memories):,}. In {into}: {len(diff.new):,} new, "
        f"{len(diff.changed):,} changed, {len(diff.same):,} the same, {len(diff.missing):,} only here (they stay)."
    ]
    for one in diff.new[:SHOWN]:
        lines.append(f"+ [{one.category}] {one.observation}")
        if opposed := diff.conflicts.get(one.uuid):
            lines.append(f"    contradicts memory {', '.join(map(str, opposed))}")
        if reason := diff.held.get(one.uuid):
            lines.append(f"    held for review: {reason}")
    lines += _more(len(diff.new), "new")
    for edited in diff.changed[:SHOWN]:
        names = ", ".join(edited.before)
        text = marked(edited.text) if "observation" in edited.before else edited.packed.observation
        lines.append(f"~ memory {edited.memory_id} ({names}): {text}")
        if reason := diff.held.get(edited.packed.uuid):
            lines.append(f"    keeps its text: {reason}")
    lines += _more(len(diff.changed), "changed")
    if diff.purged:
        lines.append(f"{len(diff.purged):,} left out, since a person had their texts purged here.")
    return "\n".join(lines)


def _more(count: int, what: str) -> list[str]:
    return [f"  and {count - SHOWN:,} more {what}; --json names all."] if count > SHOWN else []
