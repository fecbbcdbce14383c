"""How much of a big set of data a run takes: a part of it, or all of it with TEST_PROFILE=thorough."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

PROFILE = os.environ.get("TEST_PROFILE", "ci")


def some(items: Sequence[T], every: int) -> Sequence[T]:
    """One of `every` so many items, always the same ones; all of them in a thorough run."""
    return items if PROFILE == "thorough" else items[::every]
