"""Call a model by the Claude Code CLI in one-shot form: no tools, no settings, no transcript, its own login.

Flags were measured with CLI 2.1.330. A structured answer is a tool call that ends the turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claudeops.lib.claude_cli import ARGUMENT_LIMIT, environment
from memories.llm.backends.base import Failure, Reply, Request

LONGEST_REASON = 300
"""Characters."""
LEAST_USD = 0.01
"""The least that a call may cost: with the last tenth of a cent of a day it would be paid and cut off."""
UNSTRUCTURED = ("error_max_turns", "error_max_structured_output_retries")
"""How a result line says that the model answered, but not with the object it was asked for."""


@dataclass(frozen=True, slots=True)
class ClaudeBackend:
    """`binary` is the CLI, `home` the folder with its login, `passed` names further variables it gets."""

    binary: str
    home: str
    passed: Sequence[str]

    def trouble(self) -> str:
        return "" if shutil.which(self.binary) else f"the Claude Code CLI was not found ({self.binary})"

    def send(self, request: Request) -> Reply:
        with tempfile.TemporaryDirectory(prefix="claudeops-model-", ignore_cleanup_errors=True) as folder:
            variables = environment(
                os.environ,
                home=self.home,
                tmp_dir=Path(folder),
                passed=self.passed,
                extra={"CLAUDE_CODE_MAX_RETRIES": "0"},  # attempts are counted and paid for one by one
            )
            try:
                child = subprocess.Popen(
                    argv(self.binary, request),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env=variables,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise Failure(f"the CLI could not be started: {error}") from None
            try:
                out, err = child.communicate(request.text.encode("utf-8", "replace"), timeout=request.seconds)
            except subprocess.TimeoutExpired:
                raise Failure(f"no answer within {request.seconds:g} s", late=True) from None
            finally:
                _end(child)
        return read(child.returncode, out, err)


def argv(binary: str, request: Request) -> list[str]:
    """Build the command line. Raises Failure when the instructions are too long for one argument."""
    if len(request.instructions.encode("utf-8", "replace")) > ARGUMENT_LIMIT:
        raise Failure(f"the instructions are longer than {ARGUMENT_LIMIT:,} bytes")
    command = [binary, "-p", "--model", request.model, "--output-format", "json"]
    command += ["--system-prompt", request.instructions, "--tools", "", "--setting-sources", "", "--strict-mcp-config"]
    command += ["--no-session-persistence", "--max-turns", "1"]
    if request.most_usd is not None:
        command += ["--max-budget-usd", f"{max(request.most_usd, LEAST_USD):.6f}"]
    if request.schema is not None:
        command += ["--json-schema", json.dumps(request.schema)]
    return command


def read(code: int, out: bytes, err: bytes) -> Reply:
    """Read what the CLI printed and how it ended. Raises Failure."""
    result = _result(out)
    if result is None:
        lines = err.decode("utf-8", "replace").strip().splitlines()
        detail = f": {lines[-1][:LONGEST_REASON]}" if lines else ""
        raise Failure(f"the CLI ended with code {code} and no result{detail}", again=code < 0)
    reply = _reply(result)
    if result.get("subtype") in UNSTRUCTURED:
        return reply
    if result.get("is_error") or code != 0:
        status = result.get("api_error_status")
        why = str(result.get("result") or result.get("subtype") or f"code {code}")[:LONGEST_REASON]
        again = isinstance(status, int) and (status == 429 or status >= 500)
        raise Failure(why, again=again, paid=reply)
    return reply


def _result(out: bytes) -> dict[str, Any] | None:
    for line in reversed(out.splitlines()):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict) and value.get("type") == "result":
                return value
    return None


def _reply(result: dict[str, Any]) -> Reply:
    used = result.get("modelUsage")
    used = {name: each for name, each in used.items() if isinstance(each, dict)} if isinstance(used, dict) else {}
    cost = result.get("total_cost_usd")
    return Reply(
        text=str(result.get("result") or ""),
        structured=result.get("structured_output"),
        model=next(iter(used), ""),
        tokens_in=_total(used, "inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
        tokens_out=_total(used, "outputTokens"),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _total(used: dict[str, Any], *names: str) -> int | None:
    values = [each.get(name) for each in used.values() for name in names]
    counts = [count for count in values if isinstance(count, int)]
    return sum(counts) if counts else None


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the process with its group, if it is still there. Without tools it has no children elsewhere."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
