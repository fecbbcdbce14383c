"""The memory store: what agents know."""

import gc

load_ahead = False
"""Whether this process is here to recall: its model is loaded while Django's apps are."""

SELDOM = 20_000
"""New objects after which Python looks for what can go: with its 700, looking takes a seventh of a start."""


def starting(*, to_recall: bool) -> None:
    """Said by a process before it loads Django's apps, all of which stays."""
    global load_ahead
    load_ahead = to_recall
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])
