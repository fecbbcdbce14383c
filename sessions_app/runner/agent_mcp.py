"""Build the MCP configuration of one session: a file that makes the CLI start `manage.py mcp` for it. Pure.

The server gets only the environment that it needs to reach the database. The file is readable by its user only, and the
agent's tools may not read it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

SERVER = "claudeops"
READ_TOOLS = ("recall", "memory_show", "check_cooldown", "journal_query", "search", "search_decisions")
WRITE_TOOLS = ("remember", "log_event", "journal_write")

PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "DATABASE_URL", "DATABASE_URL_FILE", "SSL_CERT_FILE")
PASSED_PREFIXES = ("CLAUDEOPS_", "PG")


def tool_rules(*, read_only: bool) -> list[str]:
    return [f"mcp__{SERVER}__{name}" for name in (READ_TOOLS if read_only else READ_TOOLS + WRITE_TOOLS)]


def config(
    inherited: Mapping[str, str],
    *,
    python: str,
    manage: str,
    session: str,
    data_dir: str,
    settings_module: str,
    read_only: bool,
) -> dict[str, Any]:
    """Build the file's content. `session` is a UUID; it fixes agent and project, so the model cannot choose them."""
    environment = {
        name: value for name, value in inherited.items() if name in PASSED_VARIABLES or name.startswith(PASSED_PREFIXES)
    }
    environment |= {
        "DJANGO_SETTINGS_MODULE": settings_module,
        "CLAUDEOPS_DATA_DIR": data_dir,
        # The server signs nothing. With a key of its own it does not read the installation's key file.
        "SECRET_KEY": secrets.token_urlsafe(32),
        "PYTHONUNBUFFERED": "1",
    }
    arguments = [manage, "mcp", "--session", session]
    if read_only:
        arguments.append("--read-only")
    server = {"type": "stdio", "command": python, "args": arguments, "env": environment}
    return {"mcpServers": {SERVER: server}}
