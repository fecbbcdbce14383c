"""The change token of a list: the id of the latest change, and hashes of the rows on the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from claudeops.lib.change_token import Changes, ChangeToken, changes_of, hash_of
from memories.models import Memory
from memories.queries.list import COLUMNS


def key_of(memory: Memory) -> str:
    return str(memory.pk)


def mark_of(memory: Memory) -> str:
    return hash_of([getattr(memory, name) for name in COLUMNS])


def token_of(latest: int, memories: Iterable[Memory]) -> str:
    """Return the token of a page that knows the change `latest`."""
    return str(ChangeToken(str(latest), rows={key_of(memory): mark_of(memory) for memory in memories}))


def changes(
    seen: ChangeToken, rows: Sequence[Memory], pushed_off: Sequence[Memory], touched: Collection[int] = ()
) -> Changes[Memory]:
    """Compute the changes of a page.

    `pushed_off` are rows that the browser still shows: they stay, since they may be selected. `touched` are changed
    ids.
    """
    return changes_of(seen.rows, rows, key_of, mark_of, kept=pushed_off, touched={str(pk) for pk in touched})
