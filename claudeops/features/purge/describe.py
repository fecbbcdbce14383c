"""The plan and the receipt of a purge in words. A plan shows the texts; none of them is in a receipt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps

from claudeops.features.purge.choice import Chosen
from claudeops.lib.cli import table
from memories.models import Memory
from sessions_app.models import Purge

SHORT = (
    "{n:,} {texts} fewer than 8 characters and {are} only removed with their memories; --short, or the box of the "
    "form, looks for them, too."
)
OUTSIDE = "Outside of the data folder, unchanged, a person's own: {names}"
ELSEWHERE = "Sessions that know it ran on other hosts, whose raw logs stay: {names}"
COPIES = "BACKUPS from before still hold it: {names}"
KEPT = "It stays where it is a name or a key: {names}"
EXAMPLES = "It has fewer than 8 characters and is looked for as a whole word, in these places among others:"
MOST_TEXTS = 50

PLACES = (
    ("Memories", "memories", "memories"),
    ("History of memories", "memory-changes", "memory_changes"),
    ("Prompts of sessions: the memories", "sessions", "injection_receipts injected_memories"),
    ("Sessions: task, prompt, answer", "sessions", "sessions used_memories"),
    ("Logs of sessions", "sessions", "session_log_entries sessions/"),
    ("Events", "events", "events service_checks"),
    ("Sessions of developers", "transcripts", "facts segments hook_receipts transcripts transcript_parts"),
    ("Decisions of the gate", "decisions", "gate_decisions agent_captures"),
    ("Memory files of agents", "projects", "agent_files agent_file_entries agent_file_conflicts agent"),
    ("MEMORY.md", "memory-file", "memory_files memory_file_commits MEMORY"),
    ("Proposals for MEMORY.md", "inbox", "proposals proposal_decisions proposal_evidence reflections"),
    ("Disagreements", "inbox", "disagreements"),
    ("Questions that were asked", "recall-asked", "recalls recall_marks"),
    ("Telemetry", "telemetry", "telemetry_records"),
    ("Backups", "", "backups"),
)
"""The places in words, the page that shows each, and its tables, folders and files, up to the first dot or blank."""


@dataclass(slots=True)
class Place:
    """A place in words: the name of its page, "" for none, how often a text stands there, its columns and files."""

    words: str
    page: str
    number: int = 0
    names: list[str] = field(default_factory=list)


def places_of(counts: Mapping[str, int]) -> list[Place]:
    """Return the places of a plan or a receipt, as people call them."""
    by_name = {name: (words, page) for words, page, names in PLACES for name in names.split()}
    tables = {model._meta.db_table: str(model._meta.verbose_name_plural).capitalize() for model in apps.get_models()}
    places: dict[str, Place] = {}
    for name, number in counts.items():
        start = f"{name.partition('/')[0]}/" if "/" in name else re.split(r"[. ]", name)[0]
        words, page = by_name.get(start) or (tables.get(start, f"File {name}"), "")
        place = places.setdefault(words, Place(words, page))
        place.number += number
        place.names.append(name)
    return list(places.values())


def texts_of(chosen: Chosen) -> tuple[list[tuple[str, int | None]], int]:
    """Return the first texts that would go, each with the memory that says it, and how many more there are."""
    rows = Memory.objects.filter(pk__in=chosen.memories[:MOST_TEXTS]).order_by("pk")
    by_text = dict(rows.values_list("observation", "pk"))
    others = [text for text in chosen.texts if text not in by_text]
    texts = [*by_text.items(), *((text, None) for text in others)][:MOST_TEXTS]
    return texts, max(0, len(set(chosen.texts)) - len(texts))


def plan_text(plan: Mapping[str, Any], chosen: Chosen) -> str:
    """Return a plan for a terminal. What a short word chooses is shown: it may be more than was meant."""
    memories = "1 memory" if plan["memories"] == 1 else f"{plan['memories']:,} memories"
    lines = [f"{memories} and {plan['texts']:,} texts would be removed (--json lists them):"]
    if chosen.needles().shows_examples:
        texts, more = texts_of(chosen)
        lines += [f"  “{text}”" + (f" (memory {pk})" if pk else "") for text, pk in texts]
        lines += [f"  and {more:,} more"] if more else []
        lines += [EXAMPLES, *(f"  “{example}”" for example in plan["examples"])] if plan["examples"] else []
    lines += [_table(plan["places"]), *notes(plan)]
    if plan["copies"]:
        lines.append("--backups removes these backups, too.")
    if plan["running"]:
        named = ", ".join(map(str, plan["running"]))
        lines.append(f"Sessions run that know it and may write it again: {named}. Wait for their end, or add --force.")
    lines.append("Nothing was changed. Add --yes to do it; it cannot be undone.")
    return "\n".join(lines)


def receipt_text(purge: Purge) -> str:
    receipt = purge.receipt
    lines = [f"Purge {purge.pk} is done. Removed:", _table(receipt.get("removed", {})), *notes(receipt)]
    for command in receipt.get("history", ()):
        lines += [
            "Git's history still holds it. Stop claudeops and run this; it names the lines by their SHA-256:",
            command,
        ]
    return "\n".join(lines)


def notes(facts: Mapping[str, Any]) -> list[str]:
    """Return what a person must know beside what is removed, by a plan or a receipt, a sentence each."""
    sentences = {"outside": OUTSIDE, "elsewhere": ELSEWHERE, "copies": COPIES, "kept": KEPT}
    named = {sentence: ", ".join(facts.get(name) or ()) for name, sentence in sentences.items()}
    lines = [sentence.format(names=names) for sentence, names in named.items() if names]
    if count := facts.get("too_short", 0):
        texts, verb = ("text has", "is") if count == 1 else ("texts have", "are")
        lines.append(SHORT.format(n=count, texts=texts, are=verb))
    return lines + [f"A memory file could not be changed: {one}" for one in facts.get("files_left", ())]


def _table(places: Mapping[str, int]) -> str:
    rows = [[one.words, f"{one.number:,}", ", ".join(one.names)] for one in places_of(places)]
    return table(["place", "number", "columns and files"], rows) if rows else "  nothing"
