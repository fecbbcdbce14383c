# ruff: noqa: N999  (the name of the command)
"""The command `agent-memory` with what needs to know sessions: when an agent was last told of its file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memories.management.agent_memory import Command as AgentMemoryCommand
from memories.models import AgentFile
from sessions_app.queries.told_files import last_told


class Command(AgentMemoryCommand):
    def last_told(self, files: Sequence[AgentFile]) -> dict[int, datetime]:
        return last_told(files)
