"""How much of a big set of data a run takes: a part of it, or all of it with TEST_PROFILE=thorough."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

PROFILE = os.environ.get("TEST_PROFILE", "ci")


def some(items: Sequence[T], every: int) -> Sequence[T]:
    """One of `every` so many items, always the same ones; all of them in a thorough run."""
    return items if PROFILE == "thorough" else items[::every]


def one_of(points: Sequence[Any]) -> list[Any]:
    """Parameters of a test: the one in the middle for every run, the others marked `thorough`."""
    sets = [one if isinstance(one, type(pytest.param())) else pytest.param(*one) for one in points]
    return [
        one if number == len(sets) // 2 else one._replace(marks=[*one.marks, pytest.mark.thorough])
        for number, one in enumerate(sets)
    ]
