"""Keep the store healthy every night: expiry, decay, duplicates, stale knowledge, what is overdue, and its undo.

Doors: `maintain_due` (schedule), `maintain_now` (by hand), `dry_run`, `undo`.
"""

from memories.curate.maintenance.dry_run import Planned, dry_run
from memories.curate.maintenance.run import Place, begin_by_hand, go_on, maintain_due, maintain_now
from memories.curate.maintenance.undo import can_undo, undo, undo_until

__all__ = [
    "Place",
    "Planned",
    "begin_by_hand",
    "can_undo",
    "dry_run",
    "go_on",
    "maintain_due",
    "maintain_now",
    "undo",
    "undo_until",
]
