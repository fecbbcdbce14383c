"""System checks of the runner: what a person can get wrong, with a hint.

Those about the CLI are kept apart: a host that serves only the web, or a demo, needs none, and every command
would repeat them. `doctor`, `up` and the worker of the sessions' queue say them.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.checks.registry import CheckRegistry

SIGNED_IN_BY = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# Other ways to reach a model; the CLI only sees them when they are handed on.
SIGNED_IN_BY_CLOUD = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")

cli_registry = CheckRegistry()


def cli_messages() -> list[CheckMessage]:
    """What is wrong with the CLI on this host; nothing in a demo, which plays recorded streams."""
    return [message for message in cli_registry.run_checks() if not message.is_silenced()]


def clusters() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each queue's name with its settings, as django-q2 puts them together."""
    common = {name: value for name, value in settings.Q_CLUSTER.items() if name != "ALT_CLUSTERS"}
    yield common["name"], common
    for name, own in settings.Q_CLUSTER.get("ALT_CLUSTERS", {}).items():
        yield name, {**common, **own}


def shortest_retry(conf: Mapping[str, Any]) -> int:
    """Seconds `retry` must exceed: a task may wait in the cluster's own queue before its `timeout` begins."""
    waits = math.ceil((conf["queue_limit"] + conf["bulk"]) / conf["workers"])
    return int(conf["timeout"] * (1 + waits))


@register("sessions_app")
def retry_is_long_enough(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.E001: a task that is not done after `retry` seconds is given to a second worker."""
    return [
        Error(
            f"The queue {name} gives a task to a second worker after {conf['retry']} s, "
            f"while the first may still be at it for {shortest_retry(conf)} s.",
            hint="Set retry above timeout × (1 + ceil((queue_limit + bulk) / workers)) in Q_CLUSTER.",
            id="sessions_app.E001",
        )
        for name, conf in clusters()
        if conf["retry"] <= shortest_retry(conf)
    ]


@register("sessions_app")
def queue_outlasts_a_session(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.E002: the queue's own limit leaves the CLI orphaned; the session's must come first."""
    longest = settings.CLAUDEOPS_SESSION_TIMEOUT + 2 * settings.CLAUDEOPS_STOP_GRACE
    limit = dict(clusters()).get("sessions", {}).get("timeout", 0)
    if limit > longest:
        return []
    return [
        Error(
            f"The queue of the sessions ends a task after {limit} s; a session may take {longest} s "
            "(CLAUDEOPS_SESSION_TIMEOUT and twice CLAUDEOPS_STOP_GRACE).",
            hint="Raise the timeout of the cluster sessions in Q_CLUSTER, or lower CLAUDEOPS_SESSION_TIMEOUT.",
            id="sessions_app.E002",
        )
    ]


@cli_registry.register("cli")
def cli_is_found(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.W001"""
    binary = settings.CLAUDEOPS_CLAUDE_BIN
    if settings.CLAUDEOPS_DEMO or shutil.which(binary):
        return []
    return [
        checks.Warning(
            f"The Claude Code CLI ({binary}) is not found on this host: sessions that need it fail at once.",
            hint="Install it (npm install -g @anthropic-ai/claude-code), or set CLAUDEOPS_CLAUDE_BIN to where it is.",
            id="sessions_app.W001",
        )
    ]


@cli_registry.register("cli")
def cli_is_signed_in(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.W002: neither a key nor a login where the CLI will look for one."""
    if settings.CLAUDEOPS_DEMO or _key_in(os.environ) or _login_in(Path(settings.CLAUDEOPS_CLAUDE_HOME)):
        return []
    return [
        checks.Warning(
            "The Claude Code CLI is not signed in: there is no key in the environment and no login in "
            f"{settings.CLAUDEOPS_CLAUDE_HOME or 'its HOME, which is not set'}.",
            hint="Set ANTHROPIC_API_KEY for the workers, or run `claude` once as their user and sign in "
            "(CLAUDEOPS_CLAUDE_HOME names another home).",
            id="sessions_app.W002",
        )
    ]


def _key_in(environment: Mapping[str, str]) -> bool:
    clouds = [name for name in SIGNED_IN_BY_CLOUD if name in settings.CLAUDEOPS_PASS_ENV]
    return any(environment.get(name, "").strip() for name in (*SIGNED_IN_BY, *clouds))


def _login_in(home: Path) -> bool:
    if not home.is_absolute():
        return False
    if (home / ".claude" / ".credentials.json").is_file():
        return True
    if platform.system() != "Darwin":
        return False
    # macOS keeps the credentials in its keychain; what is left in a file is whose they are.
    try:
        return bool(json.loads((home / ".claude.json").read_bytes()).get("oauthAccount"))
    except (OSError, ValueError, AttributeError):
        return False
