"""Ask a model, after the fact, about pairs of memories that matching left unsure; `judge_waiting()` is the door."""

from memories.judging.batches import Done, judge_waiting

__all__ = ["Done", "judge_waiting"]
