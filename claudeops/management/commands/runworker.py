"""`manage.py runworker`: the processes that carry out what is queued.

Without `--cluster` it supervises one process for each queue; with it, it is that process.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django_q.conf import Conf

from claudeops import scheduling, worker
from claudeops.supervise import Child, Supervisor

CLUSTERS = ("default", "sessions")


def children(on_stop: str = worker.DETACH, manage: str = "") -> list[Child]:
    """The worker processes of one host, for a supervisor. `manage` is the path of manage.py."""
    return [
        Child(
            name=f"worker {cluster}",
            argv=[sys.executable, manage or sys.argv[0], "runworker", "--cluster", cluster, "--on-stop", on_stop],
            # django-q2 reads it when it is imported: set beforehand, the process need not start twice.
            env={"Q_CLUSTER_NAME": cluster},
        )
        for cluster in CLUSTERS
    ]


class Command(BaseCommand):
    help = "Carries out what is queued: short tasks (queue default) and sessions (queue sessions). Ctrl-C stops it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--cluster", choices=CLUSTERS, help="serve this queue only, in this process (default: both)"
        )
        parser.add_argument(
            "--on-stop",
            choices=worker.ON_STOP,
            default=worker.DETACH,
            help="what becomes of running sessions: detach (they go on, the next worker follows them again; "
            "the default) or stop",
        )

    def handle(self, *args: Any, cluster: str | None, on_stop: str, **options: Any) -> None:
        if cluster is not None and cluster != Conf.CLUSTER_NAME:
            self._start_again(cluster)
        self._require_migrations()
        if cluster is None:
            code = Supervisor(children(on_stop), say=self.stderr.write).run()
        else:
            scheduling.sync_schedules()
            code = worker.Worker(cluster, on_stop=on_stop).run()
        if code:
            sys.exit(code)

    def _start_again(self, cluster: str) -> None:
        """django-q2 read the name of its queue when it was imported: only a fresh start can serve another."""
        if not getattr(self, "_called_from_command_line", False):
            raise CommandError(f"Set Q_CLUSTER_NAME={cluster} before Django starts.")
        os.environ["Q_CLUSTER_NAME"] = cluster
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606

    def _require_migrations(self) -> None:
        try:
            executor = MigrationExecutor(connection)
            pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError as error:
            raise CommandError(f"The database does not answer: {error}") from error
        if pending:
            raise CommandError(f"Migrations not applied yet: {len(pending)}. Run `manage.py migrate` first.")
