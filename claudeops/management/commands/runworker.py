"""`manage.py runworker`: run the tasks of the queues until Ctrl-C or SIGTERM."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from claudeops.lib import database_version, outage
from claudeops.lib.cli import VerbCommand
from claudeops.workers.schedules import sync_schedules
from claudeops.workers.worker import DETACH, ON_STOP, Worker

QUEUES = ("default", "sessions")


class Command(BaseCommand):
    help = "Run what is queued: short tasks (queue default) and sessions (queue sessions). Ctrl-C stops it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", choices=QUEUES, help="serve this queue only (default: both)")
        parser.add_argument(
            "--on-stop",
            choices=ON_STOP,
            default=DETACH,
            help="what happens to running sessions: detach (they go on, the next worker follows them again; the "
            "default) or stop",
        )

    get_check_kwargs = VerbCommand.get_check_kwargs  # a worker serves no pages

    def handle(self, *args: Any, cluster: str | None, on_stop: str, **options: Any) -> None:
        try:
            difference = database_version.difference()
        except DatabaseError as error:
            cause = outage.behind(error)
            raise CommandError(cause.message if cause else f"The database does not answer: {error}") from error
        if difference:
            raise CommandError(" ".join(difference))
        sync_schedules()
        Worker([cluster] if cluster else QUEUES, on_stop=on_stop).run()
