"""The plan and the receipt of a purge in words, for a terminal. None of the texts is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claudeops.lib.cli import table
from claudeops.purge.run import Plan
from sessions_app.models import Purge

SHORT = "{n:,} {texts} fewer than 8 characters and {are} only removed with their memories; --short looks for them, too."
OUTSIDE = "Outside of the data folder, unchanged, a person's own: {names}"
ELSEWHERE = "Sessions that know it ran on other hosts, whose raw logs stay: {names}"
COPIES = "BACKUPS from before still hold it: {names}"
KEPT = "It stays where it is a name or a key: {names}"


def plan_text(plan: Plan) -> str:
    lines = [f"{_memories(plan.memories)} and {plan.texts:,} texts would be removed:"]
    lines += _places(plan.places)
    lines += plan_notes(plan)
    if plan.copies:
        lines.append("--backups removes these backups, too.")
    if plan.running:
        named = ", ".join(map(str, plan.running))
        lines.append(f"Sessions run that know it and may write it again: {named}. Wait for their end, or add --force.")
    lines.append("Nothing was changed. Add --yes to do it; it cannot be undone.")
    return "\n".join(lines)


def plan_notes(plan: Plan) -> list[str]:
    """Return what a person must know before the confirmation, a sentence each."""
    return list(_notes(plan.outside, plan.elsewhere, plan.copies, plan.kept, plan.too_short))


def receipt_text(purge: Purge) -> str:
    receipt = purge.receipt
    lines = [f"Purge {purge.pk} is done. Removed:", *_places(receipt.get("removed", {}))]
    lines += notes(purge)
    for command in receipt.get("history", ()):
        lines += [
            "Git's history still holds it. Stop claudeops and run this; it names the lines by their SHA-256:",
            command,
        ]
    return "\n".join(lines)


def notes(purge: Purge) -> list[str]:
    """Return what a person must know beside what was removed, a sentence each."""
    receipt = purge.receipt
    outside, elsewhere, copies, kept = (receipt.get(name) or () for name in ("outside", "elsewhere", "copies", "kept"))
    found = list(_notes(outside, elsewhere, copies, kept, receipt.get("too_short", 0)))
    found += [f"A memory file could not be changed: {one}" for one in receipt.get("files_left", ())]
    return found


def _places(places: Mapping[str, int]) -> list[str]:
    if not places:
        return ["  nothing"]
    return [table(["place", "number"], [[name, f"{count:,}"] for name, count in places.items()])]


def _notes(
    outside: Sequence[str],
    elsewhere: Sequence[str],
    copies: Sequence[str],
    kept: Mapping[str, int] | Sequence[Any],
    too_short: int,
) -> Iterator[str]:
    for sentence, names in ((OUTSIDE, outside), (ELSEWHERE, elsewhere), (COPIES, copies), (KEPT, list(kept))):
        if names:
            yield sentence.format(names=", ".join(map(str, names)))
    if too_short:
        one = too_short == 1
        yield SHORT.format(n=too_short, texts="text has" if one else "texts have", are="is" if one else "are")


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"
