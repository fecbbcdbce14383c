"""What a session's CLI is told of the MCP server: a file that starts it for this session and no other. Pure.

The server is our own `manage.py mcp`, with this Python. It gets what it needs to find the database, and no more:
the file lies in the session's folder, for the user alone, and the agent's tools may not read it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

SERVER = "claudeops"
READING = ("recall", "memory_show", "check_cooldown")
WRITING = ("remember", "log_event")

PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "DATABASE_URL", "DATABASE_URL_FILE", "SSL_CERT_FILE")
PASSED_PREFIXES = ("CLAUDEOPS_", "PG")


def tool_rules(*, read_only: bool) -> list[str]:
    """The rules that allow the server's tools."""
    return [f"mcp__{SERVER}__{name}" for name in (READING if read_only else READING + WRITING)]


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
    """The file's content. `session` is its UUID: neither agent nor project is the model's to choose."""
    environment = {
        name: value for name, value in inherited.items() if name in PASSED or name.startswith(PASSED_PREFIXES)
    }
    environment |= {
        "DJANGO_SETTINGS_MODULE": settings_module,
        "CLAUDEOPS_DATA_DIR": data_dir,
        # It signs nothing, so it need not know the house's key; without one it would look for the file.
        "SECRET_KEY": secrets.token_urlsafe(32),
        "PYTHONUNBUFFERED": "1",
    }
    arguments = [manage, "mcp", "--session", session]
    if read_only:
        arguments.append("--read-only")
    server = {"type": "stdio", "command": python, "args": arguments, "env": environment}
    return {"mcpServers": {SERVER: server}}
