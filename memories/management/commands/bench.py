"""`manage.py bench`: how right and how fast recall and matching are, on sets of lines."""

from __future__ import annotations

from memories.cli import VerbCommand
from memories.management.benches import export, matching, recalling


class Command(VerbCommand):
    help = "Measure recall and matching on sets of lines; the operator's own rows are never touched."
    noun = "bench"
    # A new bench is a module of `management/benches` with VERBS, and its name here.
    verbs = {**matching.VERBS, **recalling.VERBS, **export.VERBS}
