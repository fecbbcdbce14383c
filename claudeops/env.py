"""Declare every environment variable of claudeops once: name, allowed values, default, help.

`python -m claudeops.env` writes README.md's tables. django-environ's casts are not used: they take any word for False.
"""

from __future__ import annotations

import difflib
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

BASE_DIR = Path(__file__).resolve().parent.parent

TRUE = {"1", "true", "yes", "on", "y", "t"}
FALSE = {"0", "false", "no", "off", "n", "f", ""}
MODEL_ROLES = ("observer", "classifier", "reflector", "triage", "judge", "rewriter")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of value. `parse` raises ValueError unless the value is `allowed` (in words; "" = any)."""

    allowed: str
    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable. `shown` describes a default that is computed at start (a path, a host name)."""

    name: str
    kind: Kind
    default: Any
    help: str
    shown: str = ""


def whole(low: int, high: int) -> Kind:
    return Kind(f"a whole number from {low} to {high}", lambda raw: _within(int(raw), low, high))


def number(low: float, high: float) -> Kind:
    return Kind(f"a number from {low} to {high}", lambda raw: _within(float(raw), low, high))


def _within(value: Any, low: float, high: float) -> Any:
    if not low <= value <= high:  # also refuses nan
        raise ValueError
    return value


def one_of(*words: str) -> Kind:
    def parse(raw: str) -> str:
        return words[[word.lower() for word in words].index(raw.strip().lower())]

    return Kind("one of " + ", ".join(words), parse)


def _zone(raw: str) -> str:
    if raw not in available_timezones():
        raise ValueError
    return raw


def _boolean(raw: str) -> bool:
    word = raw.strip().lower()
    if word not in TRUE | FALSE:
        raise ValueError
    return word in TRUE


def _any_of(raw: str, *allowed: str) -> list[str]:
    chosen: list[str] = names.parse(raw)
    if not set(chosen) <= set(allowed):
        raise ValueError
    return chosen


def _web_address(raw: str) -> str:
    value = raw.strip()
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password):
        raise ValueError
    return value


def _budgets(raw: str) -> dict[str, float]:
    pairs = [part.split("=") for part in names.parse(raw)]
    if any(len(pair) != 2 or pair[0].strip() not in MODEL_ROLES for pair in pairs):
        raise ValueError
    return {role.strip(): _within(float(amount), 0, 100_000) for role, amount in pairs}


def _tool_rules(raw: str) -> list[str]:
    """Split at commas outside parentheses."""
    rules, depth, current = [], 0, ""
    for character in raw:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            raise ValueError
        if character == "," and depth == 0:
            rules.append(current)
            current = ""
        else:
            current += character
    if depth:
        raise ValueError
    return [rule.strip() for rule in (*rules, current) if rule.strip()]


def _folder(raw: str) -> Path:
    path = BASE_DIR / Path(raw.strip()).expanduser()
    if not raw.strip() or (path.exists() and not path.is_dir()):
        raise ValueError
    return path


def _markdown_file(raw: str) -> str:
    path = Path(raw.strip()).expanduser()
    if raw.strip() and not (path.is_absolute() and path.suffix == ".md" and ".git" not in path.parts):
        raise ValueError
    return str(path) if raw.strip() else ""


text = Kind("", str.strip)
names = Kind("", lambda raw: [part.strip() for part in raw.split(",") if part.strip()])
hook_sets = Kind("any of agents, cooldowns", lambda raw: _any_of(raw, "agents", "cooldowns"))
budgets = Kind(f"amounts like observer=2,judge=0.5; roles are {', '.join(MODEL_ROLES)}", _budgets)
boolean = Kind("true or false", _boolean)
time_zone = Kind("the name of a time zone, such as Europe/Berlin", _zone)
web_address = Kind("an address that begins with http:// or https://, without a user or password in it", _web_address)
tool_rules = Kind("tool rules like Read,Bash(docker ps *) with balanced parentheses", _tool_rules)
folder = Kind("the path of a folder, not of a file", _folder)
markdown_file = Kind("the absolute path of a file that ends with .md, or nothing", _markdown_file)

OBSERVE = (
    "Read,Grep,Glob,Bash(docker ps *),Bash(docker inspect *),Bash(docker logs *),"
    "Bash(systemctl status *),Bash(journalctl -u *),Bash(df *),Bash(free *),Bash(uptime)"
)

VARIABLES: tuple[str | Variable, ...] = (
    "What Django itself reads",
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
    ),
    Variable(
        "CSRF_TRUSTED_ORIGINS",
        names,
        [],
        "Origins (https://ops.example.org) whose forms are accepted behind a proxy.",
    ),
    Variable(
        "DATABASE_URL",
        text,
        "",
        "`postgres://user:password@host/name`, or `sqlite:////path/to/file`.",
        "a SQLite file in the data folder",
    ),
    "Paths, host and workers",
    Variable(
        "CLAUDEOPS_DATA_DIR",
        folder,
        BASE_DIR / ".claudeops",
        "Folder of the database, the raw logs and the secret key.",
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
        "Trust `X-Forwarded-Proto` from the proxy in front. Only when the proxy always sets it.",
    ),
    Variable(
        "CLAUDEOPS_TRUSTED_PROXIES",
        whole(0, 5),
        0,
        "How many proxies in front append the address that they see to `X-Forwarded-For`. Sign-in limits count by the "
        "address before theirs; with 0 by that of the connection.",
    ),
    Variable(
        "CLAUDEOPS_LOG_LEVEL",
        one_of("DEBUG", "INFO", "WARNING", "ERROR"),
        "INFO",
        "Lowest level that is logged to stderr.",
    ),
    Variable(
        "CLAUDEOPS_WORKERS",
        whole(1, 64),
        2,
        "Short tasks (schedules, sweeps, reaping) that may run at once on this host.",
    ),
    Variable("CLAUDEOPS_SESSION_WORKERS", whole(1, 64), 2, "Sessions that may run at once on this host."),
    Variable(
        "CLAUDEOPS_LOG_ENTRY_DAYS",
        whole(1, 3650),
        30,
        "Days after which the readable log of an ended session is pruned; the raw log stays.",
    ),
    Variable(
        "CLAUDEOPS_BACKUP_DAILY",
        boolean,
        True,
        "On SQLite, workers make a backup each day (UTC). On PostgreSQL nothing is made by itself.",
    ),
    Variable(
        "CLAUDEOPS_TELEMETRY_DAYS",
        whole(1, 3650),
        30,
        "Days after which the records of what each stage did are deleted.",
    ),
    Variable(
        "CLAUDEOPS_METRICS_TOKEN",
        text,
        "",
        "The bearer token with which Prometheus reads `/metrics`. Without it there is no such page.",
    ),
    Variable(
        "CLAUDEOPS_OTLP_ENDPOINT",
        web_address,
        "",
        "Address of an OpenTelemetry collector (OTLP over HTTP, like `http://127.0.0.1:4318`). Without it nothing is "
        "exported. Headers are taken from `OTEL_EXPORTER_OTLP_HEADERS`.",
    ),
    Variable(
        "CLAUDEOPS_OTLP_CONTENT",
        boolean,
        False,
        "Export the prompts and summaries of sessions too, credentials masked.",
    ),
    Variable("CLAUDEOPS_BACKUP_KEEP", whole(1, 3650), 7, "How many daily backups are kept."),
    Variable(
        "CLAUDEOPS_BACKUP_DIR",
        folder,
        None,
        "Folder of the backups. On another disk they survive the loss of this one.",
        "`backups` in the data folder",
    ),
    "Agents and sessions",
    Variable("CLAUDEOPS_CLAUDE_BIN", text, "", "The Claude Code CLI.", "`CLAUDE_BIN`, or `claude` on the PATH"),
    Variable("CLAUDE_BIN", text, "claude", "The Claude Code CLI, when `CLAUDEOPS_CLAUDE_BIN` is not set."),
    Variable(
        "CLAUDEOPS_CLAUDE_HOME",
        text,
        os.environ.get("HOME", ""),
        "HOME of the CLI, where it keeps its login.",
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
    Variable(
        "CLAUDEOPS_ALERT_AGENT", text, "", "The agent (slug) of alerts that name none; without it they are refused."
    ),
    Variable("CLAUDEOPS_MAX_TIER", whole(1, 3), 3, "The highest tier an escalation may reach."),
    Variable(
        "CLAUDEOPS_ALLOWED_TOOLS",
        tool_rules,
        tool_rules.parse(OBSERVE),
        "Tool rules of agents that have none of their own, comma-separated.",
        "reading and looking only",
    ),
    Variable("CLAUDEOPS_DISALLOWED_TOOLS", tool_rules, [], "Tool rules denied to every agent, whatever is allowed."),
    Variable(
        "CLAUDEOPS_ADJUST_RELEVANCE",
        boolean,
        False,
        "Once a week, workers learn the relevance of project memories from the sessions that used them.",
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
        "Give every session the MCP server, so that it can recall and remember while it works.",
    ),
    Variable(
        "CLAUDEOPS_HOOK_URL",
        web_address,
        "",
        "Address at which the CLI's hooks reach this web server, like `http://127.0.0.1:8000`. Without it sessions run "
        "without hooks.",
        "set by `up` on a loopback address",
    ),
    Variable(
        "CLAUDEOPS_SESSION_HOOKS",
        hook_sets,
        ["agents"],
        "The hooks of our own sessions: `agents` (subagents are told their memory and learn) and `cooldowns` (a Bash "
        "command that a cooldown forbids is refused).",
    ),
    Variable(
        "CLAUDEOPS_INTERVAL",
        whole(60, 2_592_000),
        3600,
        "Seconds between runs of an interval agent without its own.",
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
        "Dollars of a UTC day for all sessions; beyond it scheduled sessions wait. 0 = no limit.",
    ),
    Variable(
        "CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS",
        boolean,
        False,
        "Leave credentials in the raw logs of ended sessions. The database never holds them.",
    ),
    Variable("CLAUDEOPS_INCLUDE_SUBAGENTS", boolean, False, "Read markers from subagents' text too."),
    Variable(
        "CLAUDEOPS_TRUSTED_MCP_SERVERS",
        names,
        [],
        "MCP servers whose answers do not count as outside text, beside claudeops's own.",
    ),
    Variable(
        "CLAUDEOPS_HOUSE_TOOLS",
        names,
        [],
        "Further tools of agents whose answers do not count as outside text.",
    ),
    Variable(
        "CLAUDEOPS_HOUSE_COMMANDS",
        names,
        [],
        "Further shell commands that show the state of your own machines, like `ceph status,pveversion`.",
    ),
    Variable(
        "CLAUDEOPS_OUTSIDE_COMMANDS",
        names,
        [],
        "Shell commands that show outside text, although the table in `sessions_app/runner/exposure.toml` says "
        "otherwise, like `docker ps,make`.",
    ),
    Variable(
        "CLAUDEOPS_OUTSIDE_PATHS",
        names,
        [],
        "Further folders that others can write, so that reading them is reading outside text.",
    ),
    Variable(
        "CLAUDEOPS_REPLAY_SPEED",
        number(0, 1000),
        1.0,
        "How fast recorded streams are played: 1 = as recorded, 0 = at once.",
    ),
    "Memory",
    Variable(
        "CLAUDEOPS_MEMORY_BUDGET",
        whole(0, 200_000),
        2000,
        "Tokens (characters / 4) of memory in a prompt; 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_TIER1_MEMORY_BUDGET",
        whole(0, 200_000),
        None,
        "The same for tier 1.",
        "`CLAUDEOPS_MEMORY_BUDGET`",
    ),
    Variable(
        "CLAUDEOPS_TIER2_MEMORY_BUDGET",
        whole(0, 200_000),
        None,
        "The same for tier 2.",
        "`CLAUDEOPS_MEMORY_BUDGET`",
    ),
    Variable(
        "CLAUDEOPS_TIER3_MEMORY_BUDGET",
        whole(0, 200_000),
        None,
        "The same for tier 3.",
        "`CLAUDEOPS_MEMORY_BUDGET`",
    ),
    Variable(
        "CLAUDEOPS_MEMORY_RELEVANT_SHARE",
        number(0, 1),
        0.4,
        "Part of the budget for memories relevant to a session's task; the rest is filled by confidence. 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_MEMORY_RELEVANT_MIN_CONFIDENCE",
        number(0, 1),
        0.5,
        "Lowest confidence of a memory that a task brings into the prompt, unless a person approved it.",
    ),
    Variable(
        "CLAUDEOPS_CURATED_BUDGET",
        whole(0, 200_000),
        1000,
        "Tokens (characters / 4) of the curated memory (MEMORY.md) in a prompt and in a briefing; 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_KNOWLEDGE_BUDGET",
        whole(0, 200_000),
        800,
        "Tokens (characters / 4) of the block of knowledge in a prompt; 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_KNOWLEDGE_MOST",
        whole(0, 100),
        10,
        "Memories of the block of knowledge at most; 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_KNOWLEDGE_PROFILE",
        one_of("auto", "lean", "balanced", "deep"),
        "auto",
        "How many memories the block of knowledge looks for: `lean` (2 or 3, the query is not rewritten), `balanced` "
        "(5 to 7), `deep` (10 to 15), `auto` (lean without a task, balanced with one, deep for an alert or an "
        "escalation).",
    ),
    "Embeddings and recall",
    Variable(
        "CLAUDEOPS_EMBEDDINGS",
        one_of("local", "endpoint", "off"),
        "local",
        "Source of the vectors: `local` (a model on this machine), `endpoint` (any OpenAI-compatible one), or `off` "
        "(search by keywords alone).",
    ),
    Variable(
        "CLAUDEOPS_EMBEDDINGS_INSTALL",
        boolean,
        True,
        "Workers download the local model when it is missing (90 MB, once).",
    ),
    Variable(
        "CLAUDEOPS_MODELS_DIR",
        folder,
        None,
        "Folder of the local models. The demo uses the operator's.",
        "`models` in the data folder",
    ),
    Variable(
        "CLAUDEOPS_EMBEDDINGS_URL",
        web_address,
        "",
        "The endpoint: `https://host/v1`, or the full address of its `/embeddings`.",
    ),
    Variable("CLAUDEOPS_EMBEDDINGS_MODEL", text, "", "The model's name at the endpoint."),
    Variable(
        "CLAUDEOPS_EMBEDDINGS_KEY",
        text,
        "",
        "The endpoint's key, sent as a bearer token and never logged or shown.",
    ),
    Variable(
        "CLAUDEOPS_BRIEFING_BUDGET",
        whole(0, 20_000),
        1500,
        "Tokens (characters / 4) of the briefing that a developer's session gets when it starts; 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_PROMPT_MEMORIES",
        whole(0, 10),
        3,
        "Most memories that a prompt of a developer's session brings, those that match it well; 0 = none.",
    ),
    Variable(
        "CLAUDEOPS_RECALL_AGE",
        one_of("added", "multiplied", "none"),
        "added",
        "How age counts in a recall: `added` (one more signal), `multiplied` (a factor, which buries old memories), "
        "`none`.",
    ),
    Variable(
        "CLAUDEOPS_RECALL_REWRITE_URL",
        web_address,
        "",
        "Address of a fast chat model that rewrites a query: `…/v1/chat/completions` (OpenAI's API) or "
        "`…/v1/messages` (Anthropic's). Empty = no rewriting.",
    ),
    Variable("CLAUDEOPS_RECALL_REWRITE_MODEL", text, "", "The name of that model."),
    Variable("CLAUDEOPS_RECALL_REWRITE_KEY", text, "", "The key for it; never logged or shown."),
    Variable(
        "CLAUDEOPS_RECALL_REWRITE_TIMEOUT",
        number(0.1, 2),
        2.0,
        "Seconds after which the query is searched unchanged.",
    ),
    Variable(
        "CLAUDEOPS_VECTOR_SEARCH",
        one_of("auto", "numpy", "pgvector"),
        "auto",
        "Vector search on PostgreSQL: `pgvector` (its HNSW index), `numpy` (in the process), `auto` (pgvector from a "
        "million vectors on). Without the extension numpy answers.",
    ),
    "Trust",
    Variable(
        "CLAUDEOPS_TRUST",
        one_of("open", "guarded", "strict"),
        "guarded",
        "Which memories a prompt is told: `open` (all that the gate allows), `guarded` (not those about the agent, its "
        "rights and reports, credentials, foreign hosts, removal, protection or standing orders whose session had read "
        "outside text, until a person or an independent session confirms them), or `strict` (only confirmed ones).",
    ),
    "Matching",
    Variable(
        "CLAUDEOPS_MATCHING",
        one_of("semantic", "structural", "supersede"),
        "semantic",
        "How an agent's statement is compared with known memories: `semantic` (by its meaning), `structural` (it "
        "confirms the first memory of its service and category, whose text stays), or `supersede` (a new one "
        "supersedes the others of its service and category).",
    ),
    Variable(
        "CLAUDEOPS_MATCHING_JUDGE_URL",
        web_address,
        "",
        "Address of a chat model that judges the pairs which comparison left unsure: `…/v1/chat/completions` "
        "(OpenAI's API) or `…/v1/messages` (Anthropic's). Empty = no model is asked.",
    ),
    Variable("CLAUDEOPS_MATCHING_JUDGE_MODEL", text, "", "The name of that model."),
    Variable("CLAUDEOPS_MATCHING_JUDGE_KEY", text, "", "The key for it; never logged or shown."),
    "Models",
    Variable(
        "CLAUDEOPS_MODEL_OBSERVER",
        text,
        "claude:haiku",
        "The model that distils sessions: `claude:NAME` (by the Claude Code CLI and its login), `http:NAME` (at "
        "`CLAUDEOPS_MODEL_URL`) or `recorded:NAME` (from files). A name alone is one of the CLI's; empty = none.",
    ),
    Variable("CLAUDEOPS_MODEL_CLASSIFIER", text, "claude:haiku", "The model that chooses a category."),
    Variable(
        "CLAUDEOPS_MODEL_REFLECTOR", text, "claude:sonnet", "The model that proposes changes to the curated memory."
    ),
    Variable("CLAUDEOPS_MODEL_TRIAGE", text, "claude:haiku", "The model that decides on proposals."),
    Variable(
        "CLAUDEOPS_MODEL_URL",
        web_address,
        "",
        "Address for `http:` models: `…/v1/chat/completions` (OpenAI's API) or `…/v1/messages` (Anthropic's).",
    ),
    Variable("CLAUDEOPS_MODEL_KEY", text, "", "The key for it; never logged or shown."),
    Variable(
        "CLAUDEOPS_MODEL_RECORDINGS",
        text,
        "",
        "The folder of `recorded:` models: `ROLE/HASH.txt` holds the answer to the prompt with this SHA-256.",
    ),
    Variable(
        "CLAUDEOPS_MODEL_DAILY_USD",
        number(0, 100_000),
        2.0,
        "US dollars that each role may spend in a day (UTC); it is not asked when they are spent. 0 = no limit.",
    ),
    Variable("CLAUDEOPS_MODEL_BUDGETS", budgets, {}, "Other amounts for single roles."),
    Variable(
        "CLAUDEOPS_MODEL_DAILY_CALLS",
        whole(0, 1_000_000),
        2_000,
        "Calls that each role may make in a day (UTC), for models that state no cost. 0 = no limit.",
    ),
    "Observation of sessions",
    Variable(
        "CLAUDEOPS_OBSERVE",
        boolean,
        True,
        "Learn from whole sessions: those that ran here, and those whose hooks or folders are known. The command "
        "`observe` works without it.",
    ),
    Variable(
        "CLAUDEOPS_TRANSCRIPT_FOLDERS",
        names,
        [],
        "Further folders of transcripts, such as ~/.claude/projects, beside those for which hooks were installed.",
    ),
    Variable(
        "CLAUDEOPS_OBSERVE_EXCLUDE",
        names,
        [],
        "What is not observed: globs, such as */private/*, of transcripts and of the folders in which sessions work.",
    ),
    Variable(
        "CLAUDEOPS_OBSERVE_IDLE",
        number(1, 10_080),
        30.0,
        "Minutes without a new line after which a transcript is observed though its end was not heard of.",
    ),
    "Curated memory",
    Variable(
        "CLAUDEOPS_CURATE",
        boolean,
        True,
        "Curate by schedule: reflect on observations, decide on proposals, promote into MEMORY.md, maintain at night. "
        "The command `curate` works without it.",
    ),
    Variable(
        "CLAUDEOPS_REFLECT_AFTER",
        whole(1, 10_000),
        20,
        "New observations after which they are reflected on before the time of `CLAUDEOPS_REFLECT_EVERY` is over.",
    ),
    Variable(
        "CLAUDEOPS_REFLECT_EVERY",
        whole(1, 8760),
        24,
        "Hours after which observations are reflected on, however few; without a new one nothing is asked.",
    ),
    Variable(
        "CLAUDEOPS_TASK_WEBHOOK",
        web_address,
        "",
        "Address to which a task item is sent for each proposal that waits for a person; empty = none. For GitHub "
        "`https://api.github.com/repos/OWNER/NAME/issues`, for Todoist `https://api.todoist.com/api/v1/tasks`.",
    ),
    Variable(
        "CLAUDEOPS_TASK_FORMAT",
        one_of("json", "github", "todoist"),
        "json",
        "Form of a task item: plain JSON, an issue of GitHub, or a task of Todoist.",
    ),
    Variable("CLAUDEOPS_TASK_TOKEN", text, "", "The bearer token for it; never logged or shown."),
    Variable(
        "CLAUDEOPS_PUBLIC_URL",
        web_address,
        "",
        "Address at which people reach this installation, for links in task items; empty = the command is named.",
    ),
    Variable("CLAUDEOPS_TRIAGE_BATCH", whole(1, 50), 20, "Proposals that the model decides about in one call."),
    Variable(
        "CLAUDEOPS_PROPOSAL_DAYS", whole(1, 365), 7, "Days after which a proposal expires that no person answered."
    ),
    Variable(
        "CLAUDEOPS_MAINTENANCE_HOUR",
        whole(0, 23),
        3,
        "Hour of the day at which the nightly maintenance begins, in `CLAUDEOPS_MAINTENANCE_ZONE`.",
    ),
    Variable(
        "CLAUDEOPS_MAINTENANCE_ZONE",
        time_zone,
        "UTC",
        "Time zone of the nightly maintenance, such as Europe/Berlin.",
    ),
    Variable(
        "CLAUDEOPS_MEMORY_FILE",
        markdown_file,
        "",
        "The global MEMORY.md in a git repository of your own. A project's is set in the project.",
        "`memory/MEMORY.md` in the data folder",
    ),
    "Cooldowns",
    Variable("CLAUDEOPS_RESTART_LIMIT", whole(0, 1000), 2, "Restarts of a service within the window."),
    Variable("CLAUDEOPS_RESTART_WINDOW_HOURS", number(0.01, 8760), 4.0, "The window of the restart limit, in hours."),
    Variable("CLAUDEOPS_REDEPLOYMENT_LIMIT", whole(0, 1000), 1, "Redeployments of a service within the window."),
    Variable(
        "CLAUDEOPS_REDEPLOYMENT_WINDOW_HOURS",
        number(0.01, 8760),
        24.0,
        "The window of the redeployment limit, in hours.",
    ),
    "Set by the commands themselves",
    Variable("CLAUDEOPS_DEMO", boolean, False, "Marks every page as a demo. Set by `up --demo` for its own processes."),
)

BY_NAME: Mapping[str, Variable] = {one.name: one for one in VARIABLES if isinstance(one, Variable)}


def read(name: str, source: Mapping[str, str] | None = None) -> Any:
    """Return the typed value of `name`, from `source` (the environment when None) or the file that `NAME_FILE` names.

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
        return variable.kind.parse(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {raw!r}; allowed is {variable.kind.allowed}.") from None


def unknown(source: Mapping[str, str]) -> list[tuple[str, str]]:
    """Find undeclared CLAUDEOPS_ variables, each with the nearest declared name (or "")."""
    return [
        (name, next(iter(difflib.get_close_matches(name, BY_NAME, n=1)), ""))
        for name in sorted(source)
        if name.startswith("CLAUDEOPS_") and name not in BY_NAME and name.removesuffix("_FILE") not in BY_NAME
    ]


# README.md's tables.

TABLES = re.compile(r"(?s)(?<=<!-- variables: written by `python -m claudeops.env` -->\n).*?(?=<!-- /variables -->)")


def tables() -> str:
    return "\n".join(_lines()) + "\n\n"


def _lines() -> Iterator[str]:
    for one in VARIABLES:
        if isinstance(one, str):
            yield from ("", f"### {one}", "", "| Variable | Default | Allowed | What it is for |", "|---|---|---|---|")
        else:
            yield f"| `{one.name}` |{_cell(one.shown or _default(one))}|{_cell(one.kind.allowed)}| {one.help} |"


def _cell(content: str) -> str:
    return f" {content} " if content else " "


def _default(variable: Variable) -> str:
    """Format the default as the environment would hold it."""
    value = variable.default
    if isinstance(value, list):
        shown = ",".join(value)
    elif isinstance(value, dict):
        shown = ",".join(f"{name}={amount:g}" for name, amount in value.items())
    elif isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, float):
        shown = f"{value:g}"
    else:
        shown = "" if value is None else str(value)
    return f"`{shown}`" if shown else ""


if __name__ == "__main__":
    readme = BASE_DIR / "README.md"
    readme.write_text(TABLES.sub(lambda _: tables(), readme.read_text("utf-8")), "utf-8")
