"""System checks of the queues, and checks of the CLI, each with a hint.

Checks of the CLI have their own registry, which `doctor`, `up` and the sessions' worker run: a demo needs no CLI.
"""

from __future__ import annotations

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

from claudeops.lib import outside_json

SIGNED_IN_BY = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# Other providers; the CLI sees these variables only when CLAUDEOPS_PASS_ENV names them.
SIGNED_IN_BY_CLOUD = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")

cli_registry = CheckRegistry()


def cli_messages() -> list[CheckMessage]:
    """Return warnings about the CLI on this host; none in a demo, which plays recorded streams."""
    return [message for message in cli_registry.run_checks() if not message.is_silenced()]


def clusters() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, settings) of each queue, merged as django-q2 merges them."""
    common = {name: value for name, value in settings.Q_CLUSTER.items() if name != "ALT_CLUSTERS"}
    yield common["name"], common
    for name, own in settings.Q_CLUSTER.get("ALT_CLUSTERS", {}).items():
        yield name, {**common, **own}


def shortest_retry(conf: Mapping[str, Any]) -> int:
    """Return the seconds that `retry` must exceed: a task may wait in the queue before its `timeout` starts."""
    waits = math.ceil((conf["queue_limit"] + conf["bulk"]) / conf["workers"])
    return int(conf["timeout"] * (1 + waits))


@register("sessions_app")
def retry_is_long_enough(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.E001: django-q2 gives a task to a second worker after `retry` seconds."""
    return [
        Error(
            f"The queue {name} gives a task to a second worker after {conf['retry']} s, "
            f"but the first worker may run it for {shortest_retry(conf)} s.",
            hint="Set retry above timeout × (1 + ceil((queue_limit + bulk) / workers)) in Q_CLUSTER.",
            id="sessions_app.E001",
        )
        for name, conf in clusters()
        if conf["retry"] <= shortest_retry(conf)
    ]


@register("sessions_app")
def queue_outlasts_a_session(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.E002: the queue's time limit would orphan the CLI, so a session's limit must be shorter."""
    longest = settings.CLAUDEOPS_SESSION_TIMEOUT + 2 * settings.SESSION_STOP_GRACE
    limit = dict(clusters()).get("sessions", {}).get("timeout", 0)
    if limit > longest:
        return []
    return [
        Error(
            f"The queue sessions ends a task after {limit} s, but a session may take {longest} s "
            "(CLAUDEOPS_SESSION_TIMEOUT plus twice SESSION_STOP_GRACE).",
            hint="Raise the timeout of the cluster sessions in Q_CLUSTER, or lower CLAUDEOPS_SESSION_TIMEOUT.",
            id="sessions_app.E002",
        )
    ]


@cli_registry.register("cli")
def cli_is_found(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.W001: the CLI is not installed where the workers look for it."""
    binary = settings.CLAUDEOPS_CLAUDE_BIN
    if settings.CLAUDEOPS_DEMO or shutil.which(binary):
        return []
    return [
        checks.Warning(
            f"The Claude Code CLI ({binary}) was not found on this host: sessions that need it fail at once.",
            hint="Install it (npm install -g @anthropic-ai/claude-code), or set CLAUDEOPS_CLAUDE_BIN to its path.",
            id="sessions_app.W001",
        )
    ]


@cli_registry.register("cli")
def cli_is_signed_in(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """sessions_app.W002: no key in the environment and no login in the CLI's home."""
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
    # macOS keeps the credentials in its keychain; this file names the account.
    try:
        return bool(outside_json.loads((home / ".claude.json").read_bytes()).get("oauthAccount"))
    except (OSError, ValueError, AttributeError):
        return False
