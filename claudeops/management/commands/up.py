"""`manage.py up`: the whole house with one command: database, first account, web server, workers; Ctrl-C stops all.

Starts and stops; what is checked is in `claudeops.startup`, what is said in `claudeops.welcome`.
"""

from __future__ import annotations

import http.client
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from claudeops import scheduling, startup
from claudeops.env import BASE_DIR
from claudeops.first_account import FirstSignIn, first_account
from claudeops.lib.cli import Refusal
from claudeops.supervise import Child, Supervisor
from claudeops.welcome import Missing, welcome
from sessions_app.checks import cli_messages
from sessions_app.demo.setup import set_up
from sessions_app.models import Agent

HOST, PORT = "127.0.0.1", 8000


def port_number(raw: str) -> int:
    if raw.isdecimal() and 1 <= int(raw) <= 65535:
        return int(raw)
    raise ArgumentTypeError(f"{raw!r} is no port; allowed is 1 to 65535")


class House(Supervisor):
    """A supervisor that answers Ctrl-C at once: stopping the sessions that run may take some seconds."""

    def ask_to_stop(self) -> None:
        first = not self._asked
        super().ask_to_stop()
        # Not through a stream: this runs inside a signal handler, perhaps in the middle of another write.
        os.write(sys.stdout.fileno(), b"\nStopping: sessions that run are stopped first ...\n" if first else b"\n")


class Command(BaseCommand):
    help = "Start everything (database, first account, web server, workers) and keep it running. Ctrl-C stops all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--demo", action="store_true", help="a sample homelab with recorded sessions, in a data folder of its own"
        )
        parser.add_argument("--port", type=port_number, default=PORT, help=f"port of the web server (default: {PORT})")
        parser.add_argument("--host", default=HOST, help=f"address the web server listens on (default: {HOST})")

    def handle(self, *args: Any, demo: bool, port: int, host: str, **options: Any) -> None:
        data_dir = Path(settings.CLAUDEOPS_DATA_DIR)
        if demo and not startup.is_demo_environment(os.environ, data_dir):
            self._start_again(data_dir)
        try:
            startup.require_free(host, port)
            house = startup.take_house(data_dir)
        except Refusal as refusal:
            raise CommandError(f"{refusal.message}\n{refusal.fix}") from refusal
        with house:
            try:
                code = self._run(demo, host, port, data_dir)
            except KeyboardInterrupt:
                code = 0
            self._say("All stopped." if code == 0 else "All stopped, because one of them could not be kept running.")
        if code:
            sys.exit(code)

    def _start_again(self, data_dir: Path) -> None:
        """The settings were read for the operator's own house: only a fresh start can be in another."""
        if not getattr(self, "_called_from_command_line", False):
            raise CommandError("The demo needs a process of its own. Start it with `manage.py up --demo`.")
        sys.stdout.flush()
        argv = [sys.executable, str(BASE_DIR / "manage.py"), *sys.argv[1:]]
        os.execve(sys.executable, argv, startup.demo_environment(os.environ, data_dir))  # noqa: S606  (no shell)

    def _run(self, demo: bool, host: str, port: int, data_dir: Path) -> int:
        sign_in = self._prepare(demo, data_dir)
        missing = [] if demo else self._missing(host, port)
        text = welcome(
            url=f"http://{startup.in_url(startup.reached_at(host))}:{port}/",
            sign_in=sign_in,
            data_dir=data_dir,
            database=self._engine(),
            demo=demo,
            missing=missing,
            warnings=startup.host_warnings(host, os.environ, settings.ALLOWED_HOSTS),
        )
        connections.close_all()
        children = [
            Child(
                "web server", startup.web_argv(host, port), startup.web_environment(host, os.environ), stop_within=15
            ),
            Child("workers", startup.worker_argv()),
        ]
        said = False

        def say_welcome() -> None:
            nonlocal said
            if not said and answers(startup.reached_at(host), port):
                said = True
                self._say("\n" + text)

        return House(children, say=self._say).run(while_running=say_welcome)

    def _prepare(self, demo: bool, data_dir: Path) -> FirstSignIn:
        self._say(f"Preparing the database ({self._engine()}) ...")
        try:
            call_command("migrate", interactive=False, verbosity=0)
            scheduling.sync_schedules()
            sign_in = first_account(data_dir)
            if demo:
                set_up()
        except DatabaseError as error:
            raise CommandError(f"The database does not answer as it should: {error}") from error
        except OSError as error:
            raise CommandError(f"The data folder {data_dir} cannot be written: {error.strerror}.") from error
        return sign_in

    def _engine(self) -> str:
        return str(settings.DATABASES["default"]["ENGINE"]).rpartition(".")[2]

    def _missing(self, host: str, port: int) -> list[Missing]:
        found = [Missing(message.msg, message.hint or "") for message in cli_messages()]
        if not Agent.objects.exists():
            add = f"http://{startup.in_url(startup.reached_at(host))}:{port}/admin/sessions_app/agent/add/"
            found.append(
                Missing(
                    "There is no agent yet.",
                    f"Add one at {add}, or run a single session: manage.py session run --tier 1",
                )
            )
        return found

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def answers(host: str, port: int) -> bool:
    """Whether the web server answers, whatever it says."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
