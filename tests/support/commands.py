"""Run a management command in a test: its exit code, and what it printed."""

from __future__ import annotations

import io
import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


def run(command: str | BaseCommand, *arguments: object) -> tuple[Any, str, str]:
    """Return (exit code, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(command, *map(str, arguments), stdout=out, stderr=err)
        code: Any = 0
    except SystemExit as exit_:
        code = exit_.code
    return code, out.getvalue(), err.getvalue()


def document(command: str | BaseCommand, *arguments: object) -> tuple[Any, Any]:
    """Return (exit code, the document that it prints with --json)."""
    code, out, _ = run(command, *arguments, "--json")
    return code, json.loads(out)


def result(command: str | BaseCommand, *arguments: object) -> Any:
    """Return the result in the document of a command that succeeds."""
    code, answer = document(command, *arguments)
    assert (code, answer["ok"]) == (0, True), answer
    return answer["result"]
