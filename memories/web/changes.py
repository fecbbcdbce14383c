"""The change token of a list of memories.

Its state is the id of the last change of any memory: one look into an index says whether anything happened at all
(every change writes a row, one writer at a time). The hashes of the rows say what that means for this page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from claudeops.lib.change_token import Changes, ChangeToken, changes_of, hash_of
from memories.models import Memory
from memories.queries.list import COLUMNS


def key_of(memory: Memory) -> str:
    return str(memory.pk)


def mark_of(memory: Memory) -> str:
    """A hash of what the list shows of `memory`."""
    return hash_of([getattr(memory, name) for name in COLUMNS])


def token_of(latest: int, memories: Iterable[Memory]) -> str:
    """`latest` is the id of the last change that the page knows of."""
    return str(ChangeToken(str(latest), rows={key_of(memory): mark_of(memory) for memory in memories}))


def changes(
    seen: ChangeToken, rows: Sequence[Memory], pushed_off: Sequence[Memory], touched: Collection[int] = ()
) -> Changes[Memory]:
    """`rows` are the page as it is now, `pushed_off` what the browser shows besides and what still matches: it stays,
    since it may be selected. `touched` are the ids of what changed since `seen`."""
    return changes_of(seen.rows, rows, key_of, mark_of, kept=pushed_off, touched={str(pk) for pk in touched})
