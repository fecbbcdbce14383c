"""`manage.py up`: run everything (database, first account, web server, worker) until Ctrl-C."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from claudeops.lib.cli import Refusal
from claudeops.workers import up

HOST, PORT = "127.0.0.1", 8000


def port_number(raw: str) -> int:
    if raw.isdecimal() and 1 <= int(raw) <= 65535:
        return int(raw)
    raise ArgumentTypeError(f"{raw!r} is not a port; allowed is 1 to 65535")


class Command(BaseCommand):
    help = "Start everything (database, first account, web server, worker) and keep it running. Ctrl-C stops all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--demo", action="store_true", help="a sample homelab with recorded sessions, in a data folder of its own"
        )
        parser.add_argument("--port", type=port_number, default=PORT, help=f"port of the web server (default: {PORT})")
        parser.add_argument("--host", default=HOST, help=f"address the web server listens on (default: {HOST})")

    def handle(self, *args: Any, demo: bool, port: int, host: str, **options: Any) -> None:
        if not getattr(self, "_called_from_command_line", False):
            raise CommandError("It replaces the process that calls it. Start it with `manage.py up`.")
        data_dir = Path(settings.CLAUDEOPS_DATA_DIR)
        if demo and not up.is_demo_environment(os.environ, data_dir):
            up.restart_as_demo(data_dir)
        try:
            up.up(host, port, demo=demo)
        except Refusal as refusal:
            raise CommandError(f"{refusal.message}\n{refusal.fix}".rstrip()) from refusal
        except KeyboardInterrupt:
            self.stdout.write("All stopped.")
