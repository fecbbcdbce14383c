"""Report what the stages of the pipeline did: `record()` is the one way. `prune()` deletes old ones."""

from memories.telemetry.prune import prune
from memories.telemetry.record import record

__all__ = ["prune", "record"]
