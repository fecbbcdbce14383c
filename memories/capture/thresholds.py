"""The thresholds of the gate with their defaults. Those in force are read by `memories.lifecycle.thresholds`. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Confidences (0..1) of the model from which on its word counts.

    `allow`: below it a fact is held. `reference`: the same for a fact that refers to a decision, a path or an exact
    name, and the confidence from which on such a reference lifts the model's hold.
    """

    allow: float = 0.7
    reference: float = 0.5


DEFAULTS = Thresholds()
