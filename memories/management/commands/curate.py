"""`manage.py curate`: the stages of the curated memory, by hand. Each verb is a module of `memories/management/`."""

from __future__ import annotations

from claudeops.lib.cli import VerbCommand
from memories.management import curate_maintain, curate_reflect, curate_status, curate_triage


class Command(VerbCommand):
    help = "The way from observations to MEMORY.md: what runs by schedule, by hand."
    noun = "curate"
    verbs = {
        "maintain": curate_maintain.VERB,
        "reflect": curate_reflect.VERB,
        "triage": curate_triage.VERB,
        "status": curate_status.VERB,
    }
