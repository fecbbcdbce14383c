"""Lay out what replaced what: a column for each step, an arrow from what went to what came. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

STEP, ROW, WIDTH, HEIGHT = 240, 44, 200, 32
"""Units of the drawing: from column to column, from row to row, and of a box."""
LONGEST = 30
"""Characters of a label."""
MOST = 200


@dataclass(frozen=True, slots=True)
class Node:
    """A box at x and y (its corner). `level` is its colour's name."""

    key: str
    x: int
    y: int
    label: str
    title: str
    url: str
    level: str


@dataclass(frozen=True, slots=True)
class Drawing:
    nodes: tuple[Node, ...]
    arrows: tuple[str, ...]
    width: int
    height: int


def draw(labels: Mapping[str, tuple[str, str, str]], edges: Collection[tuple[str, str]], *, only: str = "") -> Drawing:
    """Draw the nodes that an edge (from, to) touches; `only` those that are joined to one. A circle is drawn, too.

    `labels` has (label, url, level) by key, in the order of the rows.
    """
    ahead: dict[str, list[str]] = {key: [] for key in labels}
    behind: dict[str, list[str]] = {key: [] for key in labels}
    for before, after in edges:
        if before in labels and after in labels and before != after:
            ahead[before].append(after)
            behind[after].append(before)
    shown = [key for key in labels if ahead[key] or behind[key]][:MOST]
    if only:
        joined = _joined(only, ahead, behind)
        shown = [key for key in shown if key in joined]
    columns = {key: _column(key, behind, ()) for key in shown}
    rows: dict[int, int] = {}
    nodes: dict[str, Node] = {}
    for key in sorted(shown, key=lambda one: columns[one]):
        column = columns[key]
        least = max((nodes[one].y // ROW for one in behind[key] if one in nodes), default=0)
        row = max(rows.get(column, 0), least)
        rows[column] = row + 1
        label, url, level = labels[key]
        short = label if len(label) <= LONGEST else f"{label[: LONGEST - 1].rstrip()}…"
        nodes[key] = Node(key, column * STEP, row * ROW, short, label, url, level)
    arrows = [
        _arrow(nodes[before], nodes[after])
        for before in shown
        for after in dict.fromkeys(ahead[before])
        if before in nodes and after in nodes
    ]
    width = max((one.x for one in nodes.values()), default=0) + WIDTH
    return Drawing(tuple(nodes.values()), tuple(arrows), width, max((one.y for one in nodes.values()), default=0) + ROW)


def _joined(key: str, *ways: Mapping[str, Sequence[str]]) -> set[str]:
    found, rest = set[str](), [key]
    while rest:
        one = rest.pop()
        if one not in found:
            found.add(one)
            rest += [other for way in ways for other in way.get(one, ())]
    return found


def _column(key: str, behind: Mapping[str, Sequence[str]], seen: tuple[str, ...]) -> int:
    """Return the steps from the first one; what a circle leads back to is not followed."""
    earlier = [one for one in behind[key] if one not in seen and one != key]
    return max((_column(one, behind, (*seen, key)) + 1 for one in earlier), default=0) if len(seen) < MOST else 0


def _arrow(before: Node, after: Node) -> str:
    """Return the path of an arrow, from side to side."""
    x1, y1, x2, y2 = before.x + WIDTH, before.y + HEIGHT // 2, after.x, after.y + HEIGHT // 2
    bend = max(20, (x2 - x1) // 2)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 2} {y2}"
