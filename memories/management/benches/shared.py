"""What the benches' verbs share: progress on stderr, whole numbers from 1 on, where vectors are kept, the machine."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

EVERY = 15.0
"""Seconds between two lines where nobody watches a line change."""


def whole(text: str) -> int:
    """A whole number from 1 on, for argparse."""
    try:
        found = int(text)
    except ValueError:
        found = 0
    if found < 1:
        raise ArgumentTypeError(f"{text!r} is not allowed; a whole number from 1 on is.")
    return found


def cache() -> Path:
    """Where the vectors of benches are kept by content."""
    return Path(settings.CLAUDEOPS_DATA_DIR) / "bench"


def progress(what: str) -> Callable[[int, int], None]:
    """Says on stderr how far it is: on a terminal in one line, elsewhere in a line now and then."""
    said = time.monotonic()

    def say(done: int, total: int) -> None:
        nonlocal said
        last = done == total
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{what} {done:,} of {total:,}" + ("\n" if last else ""))
            sys.stderr.flush()
        elif time.monotonic() - said > EVERY:
            said = time.monotonic()
            sys.stderr.write(f"{what} {done:,} of {total:,}\n")
            sys.stderr.flush()

    return say
