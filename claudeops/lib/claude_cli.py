"""The environment of a process of the Claude Code CLI, from an allow-list. Pure. Measured with CLI 2.1.330."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

ARGUMENT_LIMIT = 100_000
"""Most bytes of text for one argument; Linux refuses 140,000 (E2BIG)."""

PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "CLAUDE_CODE_OAUTH_TOKEN")
PASSED_PREFIX = "ANTHROPIC_"

FIXED_ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # The CLI replaces "@path" in a prompt with that file's content; alerts are untrusted text.
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # A background command keeps the process alive for up to ten minutes after its result.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_MAX_RETRIES": "3",
}


def environment(
    inherited: Mapping[str, str], *, home: str, tmp_dir: Path, passed: Sequence[str], extra: Mapping[str, str]
) -> dict[str, str]:
    """Build the environment of the process from an allow-list: the agent's tools can read all of it."""
    chosen = {
        name: value
        for name, value in inherited.items()
        if name in PASSED_VARIABLES or name.startswith(PASSED_PREFIX) or name in passed
    }
    chosen.setdefault("LANG", "C.UTF-8")
    chosen.update(FIXED_ENVIRONMENT)
    chosen["CLAUDE_CODE_TMPDIR"] = str(tmp_dir)
    if home:
        chosen["HOME"] = home
    chosen.update(extra)
    return chosen
