"""Somebody who uses the real CLI in a repository, with our hooks in settings of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.support.messages_api import MessagesApi


class Person:
    """Somebody who starts the CLI in a repository, with settings of their own in a HOME of their own."""

    def __init__(self, binary: str, home: Path, repository: Path, api: MessagesApi) -> None:
        self.binary, self.home, self.repository, self.api = binary, home, repository, api

    @property
    def settings(self) -> Path:
        return self.home / ".claude" / "settings.json"

    def install(self, *arguments: str) -> None:
        call_command("hook", "install", *arguments, "--yes")

    def run(self, prompt: str, *tools: str, resume: str = "") -> list[dict[str, Any]]:
        """Run the CLI to its end, with further allowed tools; return the lines of its stream.

        `resume` is the id of the session that goes on.
        """
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "DISABLE_AUTOUPDATER": "1",
            **self.api.environment,
        }
        argv = [self.binary, "-p", "--output-format", "stream-json", "--verbose", "--include-hook-events"]
        argv += ["--model", "sonnet", "--permission-mode", "dontAsk", "--allowedTools", "Bash(echo *)", "Agent", *tools]
        argv += ["--resume", resume] if resume else []
        done = subprocess.run(
            argv,
            input=prompt,
            cwd=self.repository,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def outcomes(lines: list[dict[str, Any]]) -> list[str]:
    return [line["outcome"] for line in lines if line.get("subtype") == "hook_response"]


def result(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return next(line for line in reversed(lines) if line["type"] == "result")
