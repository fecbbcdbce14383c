"""What a list declares: its columns, built-in views and actions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

SIZES = (25, 50, 100, 200)
"""Rows of a page that a person may choose."""
SIZE = 50


@dataclass(frozen=True, slots=True)
class Column:
    """One column. The row's template draws its cell where `shown.NAME` is set, in the order of the declaration.

    `value` returns what an export writes of a row: text, a number, an aware time or None. `sort` is the name of its
    order, empty where no index serves one. `shown`: unless a person chooses; `fixed`: always. `number`: aligned right.
    `rising`: the first press on its head sorts upwards. `bare`: its head is for screen readers alone.
    """

    name: str
    label: str
    value: Callable[[Any], Any]
    sort: str = ""
    shown: bool = True
    fixed: bool = False
    number: bool = False
    rising: bool = False
    bare: bool = False


class BuiltIn(NamedTuple):
    """A built-in view: the query of its address, what its title says, and whether an index can count it."""

    label: str
    query: str
    title: str = ""
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Action:
    """An action on the selected rows: a button of the bulk bar. `key` does the same; `asks`: a page asks first.

    `url` is the name of another address that takes the selection, where the list's own bulk actions do not have it.
    """

    name: str
    label: str
    permission: str
    key: str = ""
    asks: bool = False
    bad: bool = False
    folded: bool = False
    url: str = ""


def shown_of(columns: Iterable[Column], chosen: Iterable[str] | None) -> frozenset[str]:
    """Return the names of the columns to show: the `chosen` ones, else those shown by default; fixed ones always."""
    wanted = None if chosen is None else set(chosen)
    return frozenset(one.name for one in columns if one.fixed or (one.shown if wanted is None else one.name in wanted))


def size_of(text: str) -> int | None:
    """Parse the size of a page; None for any other text."""
    return int(text) if text in {str(size) for size in SIZES} else None
