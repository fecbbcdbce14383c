"""The memory store: what agents know."""

import gc

load_ahead = False
"""Whether this process loads its embedding model while Django's apps load."""

SELDOM = 20_000
"""Objects between garbage collections: with Python's 700, they take a seventh of a process's start."""


def starting(*, to_recall: bool) -> None:
    """Configure the process before it loads Django's apps, whose objects all stay in memory."""
    global load_ahead
    load_ahead = to_recall
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])
