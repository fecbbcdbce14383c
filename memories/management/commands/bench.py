"""`manage.py bench`: how right and how fast recall and matching are, on sets of lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from claudeops.lib.cli import Result, VerbCommand
from memories.management.benches import export, latency, matching, recalling, results


class Command(VerbCommand):
    help = "Measure recall and matching on sets of lines; the operator's own rows are never touched."
    noun = "bench"
    # A new bench is a module of `management/benches` with VERBS, and its name here.
    verbs = {**matching.VERBS, **recalling.VERBS, **latency.VERBS, **export.VERBS, **results.VERBS}

    def answer(self, command: str, run: Callable[..., Result], options: Mapping[str, Any]) -> None:
        """As every command; Ctrl-C in the midst of it is no fault of the program's."""
        try:
            super().answer(command, run, options)
        except KeyboardInterrupt:
            self.stderr.write("\nBroken off. The scratch database is gone; vectors that were made are kept.")
            sys.exit(130)
