"""Every environment variable claudeops reads, typed, in one place.

A wrong value stops the start with the variable's name, what it held and what is allowed.
Knows nothing of Django's settings: `claudeops/settings.py` asks here.
"""

from __future__ import annotations

import difflib
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

from claudeops.env_values import (
    BASE_DIR,
    FALSE,
    TRUE,
    Refused,
    boolean,
    folder,
    names,
    number,
    one_of,
    text,
    tool_rules,
    web_address,
    whole,
    word_of,
)

__all__ = [
    "BASE_DIR",
    "BY_NAME",
    "FALSE",
    "OBSERVE",
    "TRUE",
    "VARIABLES",
    "Refused",
    "Variable",
    "boolean",
    "folder",
    "names",
    "number",
    "one_of",
    "read",
    "text",
    "tool_rules",
    "unknown",
    "web_address",
    "whole",
    "word_of",
]


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable.

    `default` is the value when the variable is not set; `shown` is how the default reads in the
    README when it is made at start (a path, a host name).
    """

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str
    shown: str = ""


OBSERVE = (
    "Read,Grep,Glob,Bash(docker ps *),Bash(docker inspect *),Bash(docker logs *),"
    "Bash(systemctl status *),Bash(journalctl -u *),Bash(df *),Bash(free *),Bash(uptime)"
)

VARIABLES: tuple[Variable, ...] = (
    # Django's own
    Variable(
        "SECRET_KEY",
        text,
        "",
        "Signs cookies and queued tasks. `SECRET_KEY_FILE` names a file instead.",
        "made once, kept in the data folder",
    ),
    Variable("DEBUG", boolean, False, "Django's debug pages. Never in production."),
    Variable(
        "ALLOWED_HOSTS",
        names,
        ["localhost", "127.0.0.1", "[::1]"],
        "Host names the web server answers to.",
        "localhost,127.0.0.1,[::1]",
    ),
    Variable(
        "CSRF_TRUSTED_ORIGINS", names, [], "Origins (https://ops.example.org) whose forms are accepted behind a proxy."
    ),
    Variable(
        "DATABASE_URL",
        text,
        "",
        "`postgres://user:password@host/name`, or `sqlite:////path/to/file`.",
        "a SQLite file in the data folder",
    ),
    # the house
    Variable(
        "CLAUDEOPS_DATA_DIR",
        folder,
        BASE_DIR / ".claudeops",
        "Where the database, the raw logs and the secret key live.",
        ".claudeops in the checkout",
    ),
    Variable(
        "CLAUDEOPS_HOST",
        text,
        socket.gethostname(),
        "The name of this host, written on the sessions it runs.",
        "the machine's host name",
    ),
    Variable(
        "CLAUDEOPS_PLAIN_HTTP",
        boolean,
        False,
        "Serve over plain http: no secure cookies, no redirect to https. `up` sets it for a loopback address.",
    ),
    Variable(
        "CLAUDEOPS_TRUST_PROXY",
        boolean,
        False,
        "Believe `X-Forwarded-Proto` from the proxy in front (only when it always sets it).",
    ),
    Variable(
        "CLAUDEOPS_LOG_LEVEL", one_of("DEBUG", "INFO", "WARNING", "ERROR"), "INFO", "How much is logged to stderr."
    ),
    Variable("CLAUDEOPS_WORKERS", whole(1, 64), 2, "Processes for short tasks (schedules, sweeps, reaping)."),
    Variable("CLAUDEOPS_SESSION_WORKERS", whole(1, 64), 2, "Sessions that may run at once on this host."),
    Variable(
        "CLAUDEOPS_LOG_ENTRY_DAYS",
        whole(1, 3650),
        30,
        "Days after which the readable log of an ended session is pruned; the raw log stays.",
    ),
    # what agents run with
    Variable("CLAUDEOPS_CLAUDE_BIN", text, "", "The Claude Code CLI.", "`CLAUDE_BIN`, or `claude` on the PATH"),
    Variable("CLAUDE_BIN", text, "claude", "The Claude Code CLI, when `CLAUDEOPS_CLAUDE_BIN` is not set."),
    Variable(
        "CLAUDEOPS_CLAUDE_HOME",
        text,
        os.environ.get("HOME", ""),
        "HOME of the CLI, where its login lives.",
        "the HOME of the worker",
    ),
    Variable(
        "CLAUDEOPS_WORK_DIR",
        text,
        "",
        "The folder sessions start in, unless their agent names one.",
        "`work` in the data folder",
    ),
    Variable(
        "CLAUDEOPS_PASS_ENV",
        names,
        [],
        "Further environment variables handed to the CLI (agents can read them). `ANTHROPIC_*` is always handed on.",
    ),
    Variable("CLAUDEOPS_TIER1_MODEL", text, "haiku", "The model of tier 1 (observe)."),
    Variable("CLAUDEOPS_TIER2_MODEL", text, "sonnet", "The model of tier 2 (investigate)."),
    Variable("CLAUDEOPS_TIER3_MODEL", text, "opus", "The model of tier 3 (remediate)."),
    Variable("CLAUDEOPS_MAX_TIER", whole(1, 3), 3, "The highest tier an escalation may reach."),
    Variable(
        "CLAUDEOPS_ALLOWED_TOOLS",
        tool_rules,
        tool_rules(OBSERVE),
        "Tool rules of agents that have none of their own, comma-separated.",
        "reading and looking only",
    ),
    Variable(
        "CLAUDEOPS_DISALLOWED_TOOLS", tool_rules, [], "Tool rules denied to every agent; they beat what is allowed."
    ),
    Variable(
        "CLAUDEOPS_DRY_RUN",
        boolean,
        False,
        "Sessions observe only: tools that change things are denied, escalations are recorded but not started.",
    ),
    Variable(
        "CLAUDEOPS_AGENT_MCP",
        boolean,
        False,
        "Give every session the MCP server, so that it recalls and remembers in the middle of its work.",
    ),
    Variable(
        "CLAUDEOPS_INTERVAL", whole(60, 2_592_000), 3600, "Seconds between runs of an interval agent without its own."
    ),
    Variable(
        "CLAUDEOPS_SESSION_TIMEOUT",
        whole(10, 86_400),
        3600,
        "Seconds after which a session is ended (an agent may have less).",
    ),
    Variable("CLAUDEOPS_STOP_GRACE", whole(1, 120), 10, "Seconds between SIGTERM and SIGKILL."),
    Variable("CLAUDEOPS_MAX_TURNS", whole(1, 1000), 50, "Turns of a session, unless its agent says otherwise."),
    Variable(
        "CLAUDEOPS_MAX_BUDGET_USD",
        number(0.01, 10_000),
        2.0,
        "Dollars a session may cost, unless its agent says otherwise.",
    ),
    Variable(
        "CLAUDEOPS_DAILY_BUDGET_USD",
        number(0, 1_000_000),
        20.0,
        "Dollars of a UTC day, all sessions together; beyond it scheduled sessions wait and say so. 0 = no limit.",
    ),
    Variable("CLAUDEOPS_INCLUDE_SUBAGENTS", boolean, False, "Read markers from subagents' text too."),
    Variable(
        "CLAUDEOPS_REPLAY_SPEED",
        number(0, 1000),
        1.0,
        "How fast recorded streams are played: 1 = as recorded, 0 = at once.",
    ),
    # memory
    Variable(
        "CLAUDEOPS_MEMORY_BUDGET", whole(0, 200_000), 2000, "Tokens (characters / 4) of memory in a prompt; 0 = none."
    ),
    Variable(
        "CLAUDEOPS_TIER1_MEMORY_BUDGET", whole(0, 200_000), None, "The same for tier 1.", "`CLAUDEOPS_MEMORY_BUDGET`"
    ),
    Variable(
        "CLAUDEOPS_TIER2_MEMORY_BUDGET", whole(0, 200_000), None, "The same for tier 2.", "`CLAUDEOPS_MEMORY_BUDGET`"
    ),
    Variable(
        "CLAUDEOPS_TIER3_MEMORY_BUDGET", whole(0, 200_000), None, "The same for tier 3.", "`CLAUDEOPS_MEMORY_BUDGET`"
    ),
    # meaning
    Variable(
        "CLAUDEOPS_EMBEDDINGS",
        word_of("local", "endpoint", "off"),
        "local",
        "Where vectors come from: `local` (a model on this machine), `endpoint` (any OpenAI-compatible one), or `off`.",
    ),
    Variable(
        "CLAUDEOPS_EMBEDDINGS_INSTALL",
        boolean,
        True,
        "Workers fetch the local model by themselves when it is not there (90 MB, once).",
    ),
    Variable(
        "CLAUDEOPS_MODELS_DIR",
        folder,
        None,
        "Where local models lie. The demo uses the operator's.",
        "`models` in the data folder",
    ),
    Variable(
        "CLAUDEOPS_EMBEDDINGS_URL",
        web_address,
        "",
        "The endpoint: `https://host/v1`, or the whole address of its `/embeddings`.",
    ),
    Variable("CLAUDEOPS_EMBEDDINGS_MODEL", text, "", "The model's name at the endpoint."),
    Variable(
        "CLAUDEOPS_EMBEDDINGS_KEY", text, "", "The endpoint's key, sent as a bearer token and never logged or shown."
    ),
    Variable(
        "CLAUDEOPS_RECALL_AGE",
        word_of("added", "multiplied", "none"),
        "added",
        "How age counts in a recall: one more signal; a factor (buries what is old, however true); not at all.",
    ),
    Variable(
        "CLAUDEOPS_RECALL_REWRITE_URL",
        web_address,
        "",
        "The whole address of a fast chat model that puts a query in other words: `…/v1/chat/completions` (OpenAI's "
        "way) or `…/v1/messages` (Anthropic's). Empty = none is asked.",
    ),
    Variable("CLAUDEOPS_RECALL_REWRITE_MODEL", text, "", "The name of that model."),
    Variable("CLAUDEOPS_RECALL_REWRITE_KEY", text, "", "The key for it; never logged or shown."),
    Variable(
        "CLAUDEOPS_RECALL_REWRITE_TIMEOUT",
        number(0.1, 2),
        2.0,
        "Seconds (at most 2) after which the query is searched as it is.",
    ),
    Variable(
        "CLAUDEOPS_VECTOR_SEARCH",
        word_of("auto", "numpy", "pgvector"),
        "auto",
        "What compares vectors on PostgreSQL: `pgvector` (its HNSW index, where the extension is there), `numpy` (in "
        "the process), `auto` (pgvector from a million vectors on). What cannot serve is answered by numpy.",
    ),
    # matching
    Variable(
        "CLAUDEOPS_MATCHING",
        word_of("semantic", "structural"),
        "semantic",
        "How what is said is held against what is known: `semantic` (by what it says), or `structural` (one active "
        "memory of a service and category; a new one supersedes the older).",
    ),
    Variable(
        "CLAUDEOPS_MATCHING_JUDGE_URL",
        web_address,
        "",
        "The whole address of a chat model that settles what words leave unsure: `…/v1/chat/completions` (OpenAI's "
        "way) or `…/v1/messages` (Anthropic's). Empty = none is asked.",
    ),
    Variable("CLAUDEOPS_MATCHING_JUDGE_MODEL", text, "", "The name of that model."),
    Variable("CLAUDEOPS_MATCHING_JUDGE_KEY", text, "", "The key for it; never logged or shown."),
    Variable(
        "CLAUDEOPS_MATCHING_JUDGE_TIMEOUT",
        number(0.1, 60),
        3.0,
        "Seconds after which it is not waited for any longer and the two count as distinct.",
    ),
    # cooldowns
    Variable("CLAUDEOPS_RESTART_LIMIT", whole(0, 1000), 2, "Restarts of a service within the window."),
    Variable("CLAUDEOPS_RESTART_WINDOW_HOURS", number(0.01, 8760), 4.0, "The window of the restart limit, in hours."),
    Variable("CLAUDEOPS_REDEPLOYMENT_LIMIT", whole(0, 1000), 1, "Redeployments of a service within the window."),
    Variable(
        "CLAUDEOPS_REDEPLOYMENT_WINDOW_HOURS",
        number(0.01, 8760),
        24.0,
        "The window of the redeployment limit, in hours.",
    ),
    # set by the commands themselves
    Variable("CLAUDEOPS_DEMO", boolean, False, "Marks every page as a demo. Set by `up --demo` for its own processes."),
    Variable(
        "Q_CLUSTER_NAME",
        text,
        "",
        "The queue a worker serves: `default` or `sessions`. Set by `runworker`.",
        "`default`",
    ),
)

BY_NAME: Mapping[str, Variable] = {variable.name: variable for variable in VARIABLES}


def read(name: str, source: Mapping[str, str] | None = None) -> Any:
    """The typed value of the variable `name`.

    `NAME_FILE` may hold the path of a file with the value (as Docker and systemd hand over secrets).
    Raises ImproperlyConfigured with the name, the value and what is allowed.
    """
    variable = BY_NAME[name]
    try:
        raw = FileAwareMapping(env=os.environ if source is None else source).get(name)
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE names a file that cannot be read: {error}.") from error
    if raw is None:
        return variable.default
    try:
        return variable.read(raw)
    except Refused as refusal:
        shown = repr(raw)
        raise ImproperlyConfigured(f"{name} is {shown}; allowed is {refusal}.") from None


def unknown(source: Mapping[str, str]) -> list[tuple[str, str]]:
    """CLAUDEOPS_ variables that nothing reads, each with the nearest known name (or an empty string)."""
    found = []
    for name in sorted(source):
        known = name in BY_NAME or name.removesuffix("_FILE") in BY_NAME
        if name.startswith("CLAUDEOPS_") and not known:
            close = difflib.get_close_matches(name, BY_NAME, n=1)
            found.append((name, close[0] if close else ""))
    return found
