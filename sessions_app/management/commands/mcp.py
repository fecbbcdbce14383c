"""`manage.py mcp`: the MCP server on stdin and stdout, for the scope it is started with.

Stdout belongs to the protocol; what else there is to say goes to stderr.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories.errors import MemoriesError
from sessions_app.errors import SessionsError


class Command(BaseCommand):
    help = "Serve the memories to a model over MCP (stdio): recall, remember, memory_show, log_event, check_cooldown."
    requires_system_checks: list[str] = []  # it starts beside every session, and a warning would delay it

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--session", default="", metavar="ID", help="for a session: its project, its agent")
        parser.add_argument("--project", default="", help="a project's slug: it and what is global (default: global)")
        parser.add_argument("--agent", default="", help="an agent's slug: its own memories too, in its project")
        parser.add_argument("--read-only", action="store_true", help="without remember and log_event")

    def handle(self, *args: Any, **options: Any) -> None:
        from sessions_app.mcp.scope import access_for
        from sessions_app.mcp.server import build  # takes a second: only here

        try:
            access = access_for(
                session=options["session"],
                agent=options["agent"],
                project=options["project"],
                read_only=options["read_only"],
            )
        except (MemoriesError, SessionsError) as error:
            raise CommandError(f"{error} {error.fix}".strip()) from error
        build(access).run("stdio")
