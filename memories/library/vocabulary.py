"""The words of the journal: actions are verbs, tools are nouns. The vocabulary grows by use.

Which word was merged into which is kept in the vault: the journal's lines stay as they were written.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from claudeops.lib.distinct import distinct_values
from claudeops.lib.tracked_file import disk
from memories.capture.text import fold
from memories.errors import InvalidEntry
from memories.library import vault
from memories.models import JournalEntry

FILE = "journal/vocabulary.json"
KINDS = ("action", "tool")
FIRST = {
    "action": (
        *("add", "back-up", "change", "check", "commit", "configure", "create", "decide", "deploy", "disable"),
        *("enable", "fix", "install", "merge", "migrate", "move", "note", "promote", "purge", "remove", "rename"),
        *("restart", "restore", "revert", "start", "stop", "test", "update", "write"),
    ),
    "tool": ("claudeops",),
}
"""The words that are known before any was used."""
WORD = {"action": re.compile(r"[^\W_][\w-]{0,39}\Z"), "tool": re.compile(r"[^\W_][\w.:/@+-]{0,79}\Z")}
LIKE = 0.75
"""difflib's ratio from which a known word is suggested for a new one."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the vocabulary, how often it was written, and the words that were merged into it."""

    kind: str
    word: str
    count: int
    merged: tuple[str, ...] = ()


def checked(kind: str, word: str) -> str:
    """Return a word as it is written: in lower case, with hyphens. Raises InvalidEntry for what is no word."""
    plain = "-".join(fold(word).casefold().split())
    if not WORD[kind].match(plain):
        what = "a verb, such as restart" if kind == "action" else "a noun, such as jellyfin"
        raise InvalidEntry(f"{kind} is {word[:80]!r}; it is {what}: letters, digits and hyphens.", field=kind)
    return plain


def canonical(kind: str, word: str, merged: Mapping[str, Mapping[str, str]]) -> str:
    return merged.get(kind, {}).get(word, word)


def merged_words() -> dict[str, dict[str, str]]:
    """Return the words that were merged, by kind: from the one that was written to the one that counts.

    Raises Unusable for a file that cannot be read.
    """
    stored = disk.read(vault.path_of(FILE))
    if stored.missing:
        return {}
    try:
        data = json.loads(stored.data)
        return {kind: {str(old): str(new) for old, new in data.get(kind, {}).items()} for kind in KINDS}
    except (ValueError, AttributeError) as error:
        raise disk.Unusable(f"{vault.path_of(FILE)} is no vocabulary: {error}.", "Restore it from git.") from None


def vocabulary(kind: str = "") -> list[Word]:
    """Return the words of both kinds, or of one, the most used first."""
    merged, words = merged_words(), []
    for one in [kind] if kind else KINDS:
        rows = JournalEntry.objects.order_by().values_list(one).annotate(Count("pk"))
        counts = dict.fromkeys(FIRST[one], 0) | dict(rows)
        olds = merged.get(one, {})
        words += [
            Word(one, word, count, tuple(sorted(old for old, new in olds.items() if new == word)))
            for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if word not in olds
        ]
    return words


def nearest(kind: str, word: str) -> str:
    """Return the known word that a new one is nearly; "" for a known one, and where none is near."""
    known = {*FIRST[kind], *distinct_values(JournalEntry, kind)}
    return "" if word in known else next(iter(difflib.get_close_matches(word, sorted(known), 1, LIKE)), "")


def merge(kind: str, old: str, new: str, *, by: str, at: datetime) -> int:
    """Let `new` stand for `old` in the index from now on; returns how many entries had it. Raises InvalidEntry.

    The decision is committed to the vault, and the index made again has it, too.
    """
    if kind not in KINDS:
        raise InvalidEntry(f"kind is {kind!r}; allowed are action and tool.", field="kind")
    before, after = checked(kind, old), checked(kind, new)
    if before == after:
        raise InvalidEntry(f"{old} and {new} are one word.")
    with vault.locked("vocabulary"):
        merged = {one: dict(words) for one, words in merged_words().items()}
        words = merged.setdefault(kind, {})
        if canonical(kind, after, merged) != after:
            raise InvalidEntry(f"{after} was merged into {words[after]} itself.", f"Merge into {words[after]}.")
        words |= {before: after, **{one: after for one, into in words.items() if into == before}}
        disk.write(
            vault.path_of(FILE), json.dumps(merged, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"
        )
        vault.commit(FILE, f"Merge the {kind} {before} into {after}\n\nBy: {fold(by)[:150]}\n", at=at)
    return JournalEntry.objects.filter(**{kind: before}).update(**{kind: after})
