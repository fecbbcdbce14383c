"""Somebody who uses the real CLI in a repository, with our hooks in settings of their own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
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

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "DISABLE_AUTOUPDATER": "1",
            **self.api.environment,
        }

    @property
    def transcripts(self) -> list[Path]:
        return sorted((self.home / ".claude" / "projects").rglob("*.jsonl"))

    def run(self, prompt: str, *tools: str, resume: str = "") -> list[dict[str, Any]]:
        """Run the CLI to its end, with further allowed tools; return the lines of its stream.

        `resume` is the id of the session that goes on.
        """
        argv = [self.binary, "-p", "--output-format", "stream-json", "--verbose", "--include-hook-events"]
        argv += ["--model", "sonnet", "--permission-mode", "dontAsk", "--allowedTools", "Bash(echo *)", "Agent", *tools]
        argv += ["--resume", resume] if resume else []
        done = subprocess.run(
            argv,
            input=prompt,
            cwd=self.repository,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def type(self, prompt: str) -> None:
        """Type a prompt into the CLI on a terminal, wait for the answer to it, and leave."""
        repository = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "projects": {str(self.repository): repository},
            "customApiKeyResponses": {"approved": [self.api.environment["ANTHROPIC_API_KEY"][-20:]], "rejected": []},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))
        argv = [self.binary, "--model", "sonnet", "--permission-mode", "dontAsk"]
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.repository)
            os.execve(self.binary, argv, self.environment | {"TERM": "xterm-256color"})
        screen = bytearray()

        def seen() -> str:
            return screen.decode(errors="replace")

        def read() -> None:
            try:
                while data := os.read(terminal, 65_536):
                    screen.extend(data)
            except OSError:  # the CLI has ended
                pass

        reading = Thread(target=read, daemon=True)
        reading.start()
        until(lambda: "❯".encode() in screen, seen)
        os.write(terminal, prompt.encode())
        time.sleep(0.5)
        os.write(terminal, b"\r")
        until(lambda: any('"type":"assistant"' in path.read_text() for path in self.transcripts), seen)
        os.write(terminal, b"/exit")
        time.sleep(0.5)
        os.write(terminal, b"\r")
        reading.join(20)
        os.waitpid(pid, 0)


def until(holds: Callable[[], bool], why: Callable[[], str], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, why()
        time.sleep(0.1)


def outcomes(lines: list[dict[str, Any]]) -> list[str]:
    return [line["outcome"] for line in lines if line.get("subtype") == "hook_response"]


def result(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return next(line for line in reversed(lines) if line["type"] == "result")
