"""`manage.py mcp`: run the MCP server on stdin and stdout, for the scope of its options. Errors go to stderr."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from claudeops.lib.domain_error import DomainError


class Command(BaseCommand):
    help = (
        "Run the MCP server on stdin and stdout: recall, context, memory_show, journal_query, search, "
        "search_decisions, check_cooldown, remember, log_event, journal_write."
    )
    requires_system_checks: list[str] = []  # it starts with every session, and checks would delay it

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--session", default="", metavar="ID", help="a session's number or UUID: its project and its agent"
        )
        parser.add_argument(
            "--project", default="", help="a project's slug: that project plus global memories (default: global only)"
        )
        parser.add_argument(
            "--agent",
            default="",
            help="an agent's slug: its own memories too, and its project unless --project is given",
        )
        parser.add_argument("--read-only", action="store_true", help="leave out remember, log_event and journal_write")

    def handle(self, *args: Any, **options: Any) -> None:
        from sessions_app.mcp.server import build  # imports the mcp package, which takes a second
        from sessions_app.mcp.tools import access_for

        try:
            access = access_for(
                session=options["session"],
                agent=options["agent"],
                project=options["project"],
                read_only=options["read_only"],
            )
        except DomainError as error:
            raise CommandError(f"{error} {error.fix}".strip()) from error
        build(access).run("stdio")
