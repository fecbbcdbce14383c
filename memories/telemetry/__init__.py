"""Report what the stages of the pipeline did: `record()` is the one way."""

from memories.telemetry.record import record

__all__ = ["record"]
