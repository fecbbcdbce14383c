"""Django's settings. Each environment variable is declared here, once: name, kind of value, default, what it is for.

`python -m tests.support.references` writes docs/settings.md from the declarations.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from claudeops.env import (
    BASE_DIR,
    any_of,
    boolean,
    budgets,
    folder,
    limit,
    markdown_file,
    names,
    number,
    one_of,
    read,
    refuse_old,
    text,
    time_zone,
    tool_rules,
    web_address,
    whole,
)
from claudeops.secret import secret_key

# == What Django itself reads ==
SECRET_KEY: str = read("SECRET_KEY", text, "", "made once, kept in the data folder")
"""Signs cookies and queued tasks. `SECRET_KEY_FILE` names a file instead."""
DEBUG = read("DEBUG", boolean, False)
"""Django's debug pages. Never in production."""
ALLOWED_HOSTS = read("ALLOWED_HOSTS", names, ["localhost", "127.0.0.1", "[::1]"])
"""Host names the web server answers to."""
CSRF_TRUSTED_ORIGINS = read("CSRF_TRUSTED_ORIGINS", names, [])
"""Origins (https://ops.example.org) whose forms are accepted behind a proxy."""
database_url = read("DATABASE_URL", text, "", "a SQLite file in the data folder")
"""`postgres://user:password@host/name`, or `sqlite:////path/to/file`."""

# == Paths, host and workers ==
CLAUDEOPS_DATA_DIR = read("CLAUDEOPS_DATA_DIR", folder, BASE_DIR / ".claudeops", ".claudeops in the checkout")
"""Folder of the database, the raw logs and the secret key."""
CLAUDEOPS_HOST = read("CLAUDEOPS_HOST", text, socket.gethostname(), "the machine's host name")
"""The name of this host, written on the sessions it runs."""
CLAUDEOPS_PLAIN_HTTP = read("CLAUDEOPS_PLAIN_HTTP", boolean, False)
"""Serve over plain http: no secure cookies, no redirect to https. `up` sets it for a loopback address."""
CLAUDEOPS_TRUST_PROXY = read("CLAUDEOPS_TRUST_PROXY", boolean, False)
"""Trust `X-Forwarded-Proto` from the proxy in front. Only when the proxy always sets it."""
CLAUDEOPS_TRUSTED_PROXIES = read("CLAUDEOPS_TRUSTED_PROXIES", whole(0, 5), 0)
"""How many proxies in front append the address that they see to `X-Forwarded-For`. Sign-in limits count by the
address before theirs; with 0 by that of the connection."""
CLAUDEOPS_LOG_LEVEL = read("CLAUDEOPS_LOG_LEVEL", one_of("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
"""Lowest level that is logged to stderr."""
CLAUDEOPS_WORKERS = read("CLAUDEOPS_WORKERS", whole(1, 64), 2)
"""Short tasks (schedules, sweeps, reaping) that may run at once on this host."""
CLAUDEOPS_SESSION_WORKERS = read("CLAUDEOPS_SESSION_WORKERS", whole(1, 64), 2)
"""Sessions that may run at once on this host."""
CLAUDEOPS_LOG_ENTRY_DAYS = read("CLAUDEOPS_LOG_ENTRY_DAYS", whole(1, 3650), 30)
"""Days after which the readable log of an ended session is pruned; the raw log stays."""
CLAUDEOPS_METRICS_TOKEN = read("CLAUDEOPS_METRICS_TOKEN", text, "")
"""The bearer token with which Prometheus reads `/metrics`. Without it there is no such page."""
CLAUDEOPS_OTLP_ENDPOINT = read("CLAUDEOPS_OTLP_ENDPOINT", web_address, "")
"""Address of an OpenTelemetry collector (OTLP over HTTP, like `http://127.0.0.1:4318`). Without it nothing is
exported. Headers are taken from `OTEL_EXPORTER_OTLP_HEADERS`."""
CLAUDEOPS_OTLP_CONTENT = read("CLAUDEOPS_OTLP_CONTENT", boolean, False)
"""Export the prompts and summaries of sessions too, credentials masked."""
CLAUDEOPS_BACKUP_KEEP = read("CLAUDEOPS_BACKUP_KEEP", whole(0, 3650), 7)
"""Daily backups (UTC) that are kept on SQLite; 0 = none is made. On PostgreSQL nothing is made by itself."""
CLAUDEOPS_BACKUP_DIR: Path | None = read("CLAUDEOPS_BACKUP_DIR", folder, None, "`backups` in the data folder")
"""Folder of the backups. On another disk they survive the loss of this one."""

# == Agents and sessions ==
CLAUDEOPS_CLAUDE_BIN = (
    read("CLAUDEOPS_CLAUDE_BIN", text, "", "`CLAUDE_BIN`, or `claude` on the PATH")
    or os.environ.get("CLAUDE_BIN")
    or "claude"
)
"""The Claude Code CLI."""
CLAUDEOPS_CLAUDE_HOME = read("CLAUDEOPS_CLAUDE_HOME", text, os.environ.get("HOME", ""), "the HOME of the worker")
"""HOME of the CLI, where it keeps its login."""
CLAUDEOPS_WORK_DIR = read("CLAUDEOPS_WORK_DIR", text, "", "`work` in the data folder") or str(
    CLAUDEOPS_DATA_DIR / "work"
)
"""The folder sessions start in, unless their agent names one."""
CLAUDEOPS_PASS_ENV = read("CLAUDEOPS_PASS_ENV", names, [])
"""Further environment variables handed to the CLI (agents can read them). `ANTHROPIC_*` is always handed on."""
CLAUDEOPS_TIER1_MODEL = read("CLAUDEOPS_TIER1_MODEL", text, "haiku")
"""The model of tier 1 (observe)."""
CLAUDEOPS_TIER2_MODEL = read("CLAUDEOPS_TIER2_MODEL", text, "sonnet")
"""The model of tier 2 (investigate)."""
CLAUDEOPS_TIER3_MODEL = read("CLAUDEOPS_TIER3_MODEL", text, "opus")
"""The model of tier 3 (remediate)."""
CLAUDEOPS_ALERT_AGENT = read("CLAUDEOPS_ALERT_AGENT", text, "")
"""The agent (slug) of alerts that name none; without it they are refused."""
CLAUDEOPS_MAX_TIER = read("CLAUDEOPS_MAX_TIER", whole(1, 3), 3)
"""The highest tier an escalation may reach."""
CLAUDEOPS_OBSERVE_TOOLS = tool_rules.parse(
    "Read,Grep,Glob,Bash(docker ps *),Bash(docker inspect *),Bash(docker logs *),"
    "Bash(systemctl status *),Bash(journalctl -u *),Bash(df *),Bash(free *),Bash(uptime)"
)  # what a dry run may use: reading and looking only
CLAUDEOPS_ALLOWED_TOOLS = read("CLAUDEOPS_ALLOWED_TOOLS", tool_rules, CLAUDEOPS_OBSERVE_TOOLS)
"""Tool rules of agents that have none of their own, comma-separated. By default they read and look only."""
CLAUDEOPS_DISALLOWED_TOOLS = read("CLAUDEOPS_DISALLOWED_TOOLS", tool_rules, [])
"""Tool rules denied to every agent, whatever is allowed."""
CLAUDEOPS_ADJUST_RELEVANCE = read("CLAUDEOPS_ADJUST_RELEVANCE", boolean, False)
"""Once a week, workers learn the relevance of project memories from the sessions that used them."""
CLAUDEOPS_DRY_RUN = read("CLAUDEOPS_DRY_RUN", boolean, False)
"""Sessions observe only: tools that change things are denied, escalations are recorded but not started."""
CLAUDEOPS_AGENT_MCP = read("CLAUDEOPS_AGENT_MCP", boolean, False)
"""Give every session the MCP server, so that it can recall and remember while it works."""
CLAUDEOPS_HOOK_URL = read("CLAUDEOPS_HOOK_URL", web_address, "", "set by `up` on a loopback address")
"""Address at which the CLI's hooks reach this web server, like `http://127.0.0.1:8000`. Without it sessions run
without hooks."""
CLAUDEOPS_SESSION_HOOKS = read("CLAUDEOPS_SESSION_HOOKS", any_of("agents", "cooldowns"), ["agents"])
"""The hooks of our own sessions: `agents` (subagents are told their memory and learn) and `cooldowns` (a Bash
command that a cooldown forbids is refused)."""
CLAUDEOPS_INTERVAL = read("CLAUDEOPS_INTERVAL", whole(60, 2_592_000), 3600)
"""Seconds between runs of an interval agent without its own."""
CLAUDEOPS_SESSION_TIMEOUT = read("CLAUDEOPS_SESSION_TIMEOUT", whole(10, 86_400), 3600)
"""Seconds after which a session is ended (an agent may have less)."""
CLAUDEOPS_MAX_TURNS = read("CLAUDEOPS_MAX_TURNS", whole(1, 1000), 50)
"""Turns of a session, unless its agent says otherwise."""
CLAUDEOPS_MAX_BUDGET_USD = read("CLAUDEOPS_MAX_BUDGET_USD", number(0.01, 10_000), 2.0)
"""Dollars a session may cost, unless its agent says otherwise."""
CLAUDEOPS_DAILY_BUDGET_USD = read("CLAUDEOPS_DAILY_BUDGET_USD", number(0, 1_000_000), 20.0)
"""Dollars of a UTC day for all sessions; beyond it scheduled sessions wait. 0 = no limit."""
CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS = read("CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS", boolean, False)
"""Leave credentials in the raw logs of ended sessions. The database never holds them."""
CLAUDEOPS_INCLUDE_SUBAGENTS = read("CLAUDEOPS_INCLUDE_SUBAGENTS", boolean, False)
"""Read markers from subagents' text too."""
CLAUDEOPS_TRUSTED_MCP_SERVERS = read("CLAUDEOPS_TRUSTED_MCP_SERVERS", names, [])
"""MCP servers whose answers do not count as outside text, beside claudeops's own."""
CLAUDEOPS_HOUSE_TOOLS = read("CLAUDEOPS_HOUSE_TOOLS", names, [])
"""Further tools of agents whose answers do not count as outside text."""
CLAUDEOPS_HOUSE_COMMANDS = read("CLAUDEOPS_HOUSE_COMMANDS", names, [])
"""Further shell commands that show the state of your own machines, like `ceph status,pveversion`."""
CLAUDEOPS_OUTSIDE_COMMANDS = read("CLAUDEOPS_OUTSIDE_COMMANDS", names, [])
"""Shell commands that show outside text, although the table in `sessions_app/runner/exposure.toml` says otherwise,
like `docker ps,make`."""
CLAUDEOPS_OUTSIDE_PATHS = read("CLAUDEOPS_OUTSIDE_PATHS", names, [])
"""Further folders that others can write, so that reading them is reading outside text."""
CLAUDEOPS_REPLAY_SPEED = read("CLAUDEOPS_REPLAY_SPEED", number(0, 1000), 1.0)
"""How fast recorded streams are played: 1 = as recorded, 0 = at once."""

# == Memory ==
CLAUDEOPS_MEMORY_BUDGET = read("CLAUDEOPS_MEMORY_BUDGET", whole(0, 200_000), 2000)
"""Tokens (characters / 4) of memory in a prompt, unless its agent says otherwise; 0 = none."""
CLAUDEOPS_CURATED_BUDGET = read("CLAUDEOPS_CURATED_BUDGET", whole(0, 200_000), 1000)
"""Tokens (characters / 4) of the curated memory (MEMORY.md) in a prompt and in a briefing; 0 = none."""
CLAUDEOPS_TRUST = read("CLAUDEOPS_TRUST", one_of("open", "guarded", "strict"), "guarded")
"""Which memories a prompt is told: `open` (all that the gate allows), `guarded` (not those about the agent, its
rights and reports, credentials, foreign hosts, removal, protection or standing orders whose session had read
outside text, until a person or an independent session confirms them), or `strict` (only confirmed ones)."""
CLAUDEOPS_MATCHING = read("CLAUDEOPS_MATCHING", one_of("semantic", "structural", "supersede"), "semantic")
"""How an agent's statement is compared with known memories: `semantic` (by its meaning), `structural` (it confirms
the first memory of its service and category, whose text stays), or `supersede` (a new one supersedes the others
of its service and category)."""

# == Embeddings and recall ==
CLAUDEOPS_EMBEDDINGS = read("CLAUDEOPS_EMBEDDINGS", one_of("local", "endpoint", "off"), "local")
"""Source of the vectors: `local` (a model on this machine), `endpoint` (any OpenAI-compatible one), or `off` (search
by keywords alone)."""
CLAUDEOPS_EMBEDDINGS_INSTALL = read("CLAUDEOPS_EMBEDDINGS_INSTALL", boolean, True)
"""Workers download the local model when it is missing (90 MB, once)."""
CLAUDEOPS_MODELS_DIR = read(
    "CLAUDEOPS_MODELS_DIR", folder, CLAUDEOPS_DATA_DIR / "models", "`models` in the data folder"
)
"""Folder of the local models. The demo uses the operator's."""
CLAUDEOPS_EMBEDDINGS_URL = read("CLAUDEOPS_EMBEDDINGS_URL", web_address, "")
"""The endpoint: `https://host/v1`, or the full address of its `/embeddings`."""
CLAUDEOPS_EMBEDDINGS_MODEL = read("CLAUDEOPS_EMBEDDINGS_MODEL", text, "")
"""The model's name at the endpoint."""
CLAUDEOPS_EMBEDDINGS_KEY = read("CLAUDEOPS_EMBEDDINGS_KEY", text, "")
"""The endpoint's key, sent as a bearer token and never logged or shown."""
CLAUDEOPS_BRIEFING_BUDGET = read("CLAUDEOPS_BRIEFING_BUDGET", whole(0, 20_000), 1500)
"""Tokens (characters / 4) of the briefing that a developer's session gets when it starts; 0 = none."""
CLAUDEOPS_PROMPT_MEMORIES = read("CLAUDEOPS_PROMPT_MEMORIES", whole(0, 10), 3)
"""Most memories that a prompt of a developer's session brings, those that match it well; 0 = none."""

# == Models ==
CLAUDEOPS_MODEL_OBSERVER = read("CLAUDEOPS_MODEL_OBSERVER", text, "claude:haiku")
"""The model that distils sessions: `claude:NAME` (by the Claude Code CLI and its login), `http:NAME` (at
`CLAUDEOPS_MODEL_URL`) or `recorded:NAME` (from files). A name alone is one of the CLI's; empty = none."""
CLAUDEOPS_MODEL_CLASSIFIER = read("CLAUDEOPS_MODEL_CLASSIFIER", text, "claude:haiku")
"""The model that chooses a category."""
CLAUDEOPS_MODEL_REFLECTOR = read("CLAUDEOPS_MODEL_REFLECTOR", text, "claude:sonnet")
"""The model that proposes changes to the curated memory."""
CLAUDEOPS_MODEL_TRIAGE = read("CLAUDEOPS_MODEL_TRIAGE", text, "claude:haiku")
"""The model that decides on proposals."""
CLAUDEOPS_MODEL_JUDGE = read("CLAUDEOPS_MODEL_JUDGE", text, "")
"""The model that judges the pairs which comparison left unsure; empty = a person does."""
CLAUDEOPS_MODEL_REWRITER = read("CLAUDEOPS_MODEL_REWRITER", text, "")
"""The model, a fast one, that rewrites the query of a recall; empty = no rewriting."""
CLAUDEOPS_MODEL_URL = read("CLAUDEOPS_MODEL_URL", web_address, "")
"""Address for `http:` models: `…/v1/chat/completions` (OpenAI's API) or `…/v1/messages` (Anthropic's)."""
CLAUDEOPS_MODEL_KEY = read("CLAUDEOPS_MODEL_KEY", text, "")
"""The key for it; never logged or shown."""
CLAUDEOPS_MODEL_RECORDINGS = read("CLAUDEOPS_MODEL_RECORDINGS", text, "")
"""The folder of `recorded:` models: `ROLE/HASH.txt` holds the answer to the prompt with this SHA-256."""
CLAUDEOPS_MODEL_DAILY_USD = read("CLAUDEOPS_MODEL_DAILY_USD", budgets, {"": 2.0})
"""US dollars that each role may spend in a day (UTC); it is not asked when they are spent. 0 = no limit."""
CLAUDEOPS_MODEL_DAILY_CALLS = read("CLAUDEOPS_MODEL_DAILY_CALLS", whole(0, 1_000_000), 2000)
"""Calls that each role may make in a day (UTC), for models that state no cost. 0 = no limit."""

# == Observation of sessions ==
CLAUDEOPS_OBSERVE = read("CLAUDEOPS_OBSERVE", boolean, True)
"""Learn from whole sessions: those that ran here, and those whose hooks or folders are known. The command `observe`
works without it."""
CLAUDEOPS_TRANSCRIPT_FOLDERS = read("CLAUDEOPS_TRANSCRIPT_FOLDERS", names, [])
"""Further folders of transcripts, such as ~/.claude/projects, beside those for which hooks were installed."""
CLAUDEOPS_OBSERVE_EXCLUDE = read("CLAUDEOPS_OBSERVE_EXCLUDE", names, [])
"""What is not observed: globs, such as */private/*, of transcripts and of the folders in which sessions work."""

# == Curated memory ==
CLAUDEOPS_CURATE = read("CLAUDEOPS_CURATE", boolean, True)
"""Curate by schedule: reflect on observations, decide on proposals, promote into MEMORY.md, maintain at night. The
command `curate` works without it."""
CLAUDEOPS_TASK_WEBHOOK = read("CLAUDEOPS_TASK_WEBHOOK", web_address, "")
"""Address to which a task item is sent for each proposal that waits for a person; empty = none. For GitHub
`https://api.github.com/repos/OWNER/NAME/issues`, for Todoist `https://api.todoist.com/api/v1/tasks`."""
CLAUDEOPS_TASK_FORMAT = read("CLAUDEOPS_TASK_FORMAT", one_of("json", "github", "todoist"), "json")
"""Form of a task item: plain JSON, an issue of GitHub, or a task of Todoist."""
CLAUDEOPS_TASK_TOKEN = read("CLAUDEOPS_TASK_TOKEN", text, "")
"""The bearer token for it; never logged or shown."""
CLAUDEOPS_PUBLIC_URL = read("CLAUDEOPS_PUBLIC_URL", web_address, "")
"""Address at which people reach this installation, for links in task items; empty = the command is named."""
CLAUDEOPS_MAINTENANCE_HOUR = read("CLAUDEOPS_MAINTENANCE_HOUR", whole(0, 23), 3)
"""Hour of the day at which the nightly maintenance begins, in `CLAUDEOPS_MAINTENANCE_ZONE`."""
CLAUDEOPS_MAINTENANCE_ZONE = read("CLAUDEOPS_MAINTENANCE_ZONE", time_zone, "UTC")
"""Time zone of the nightly maintenance, such as Europe/Berlin."""
CLAUDEOPS_MEMORY_FILE = read("CLAUDEOPS_MEMORY_FILE", markdown_file, "", "`memory/MEMORY.md` in the data folder")
"""The global MEMORY.md in a git repository of your own. A project's is set in the project."""

# == Cooldowns ==
CLAUDEOPS_RESTART_LIMIT = read("CLAUDEOPS_RESTART_LIMIT", limit, (2, 4.0))
"""Restarts of a service."""
CLAUDEOPS_REDEPLOYMENT_LIMIT = read("CLAUDEOPS_REDEPLOYMENT_LIMIT", limit, (1, 24.0))
"""Redeployments of a service."""

# == Set by the commands themselves ==
CLAUDEOPS_DEMO = read("CLAUDEOPS_DEMO", boolean, False)
"""Marks every page as a demo. Set by `up --demo` for its own processes."""

refuse_old(os.environ)
SECRET_KEY = SECRET_KEY or secret_key(CLAUDEOPS_DATA_DIR)
if CLAUDEOPS_EMBEDDINGS == "endpoint" and not (CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL):
    raise ImproperlyConfigured(
        "CLAUDEOPS_EMBEDDINGS is endpoint; CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL must say which."
    )

INSTALLED_APPS = [
    "claudeops.apps.ClaudeopsAdminConfig",
    "claudeops.apps.ClaudeopsConfig",
    "sessions_app",
    "memories",
    "claudeops.lib.preferences",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_filters",
    "django_htmx",
    "django_q",
    "claudeops.apps.SignInLimitsConfig",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "claudeops.middleware.StaffOnlyMiddleware",
    "claudeops.middleware.FreshOverviewMiddleware",
    "claudeops.lib.preferences.middleware.PersonMiddleware",
    "claudeops.lib.form_method.MethodMiddleware",  # after the CSRF check and the staff check
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "claudeops.urls"
WSGI_APPLICATION = "claudeops.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PROMPTS_DIR = BASE_DIR / "templates" / "prompts"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "claudeops.context.claudeops",
            ]
        },
    }
]

SQLITE_OPTIONS = {
    # IMMEDIATE takes the write lock when a transaction begins: a read-then-write never fails with "locked".
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # SQLite maps 96 MB of the file where the system allows it; mapped pages count as this process's memory.
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; "
        "PRAGMA mmap_size=100663296; PRAGMA journal_size_limit=67108864; PRAGMA cache_size=-20000;"
    ),
}


def database(url: str) -> dict[str, Any]:
    """Return Django's database settings for `url`; when it is empty, SQLite in the data folder."""
    if not url:
        with contextlib.suppress(OSError):  # check claudeops.E001 reports it
            CLAUDEOPS_DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
        url = f"sqlite:///{CLAUDEOPS_DATA_DIR / 'claudeops.sqlite3'}"
    try:
        found = dict(environ.Env.db_url_config(url))
    except Exception as error:
        raise ImproperlyConfigured("DATABASE_URL cannot be read as a database URL.") from error
    engine = found.get("ENGINE", "")
    if engine == "django.db.backends.sqlite3":
        found["OPTIONS"] = {**SQLITE_OPTIONS, **found.get("OPTIONS", {})}
        # The web server's thread keeps its connection: a new one reads the whole schema first.
        found["CONN_MAX_AGE"] = 60
        # A real file, so that tests meet the same locks and pragmas as production.
        found["TEST"] = {"NAME": str(CLAUDEOPS_DATA_DIR / "test.sqlite3")}
    elif engine == "django.db.backends.postgresql":
        found["CONN_MAX_AGE"] = 60
        found["CONN_HEALTH_CHECKS"] = True
        found.get("OPTIONS", {}).pop("prepare_threshold", None)  # no statement is prepared
    else:
        raise ImproperlyConfigured(
            f"DATABASE_URL names the engine {engine or 'of no known kind'}; allowed are postgres:// and sqlite://."
        )
    return found


DATABASES = {"default": database(database_url)}
CACHES = {"default": {"BACKEND": "claudeops.lib.clock.ProcessCache"}}


def cluster(workers: int, timeout: int) -> dict[str, int]:
    """Return one queue's settings. `retry` counts from dequeue and includes the wait in the worker's own queue."""
    queue_limit, bulk = workers, 1
    return {
        "workers": workers,
        "queue_limit": queue_limit,
        "bulk": bulk,
        "timeout": timeout,
        "retry": timeout * (1 + math.ceil((queue_limit + bulk) / workers)) + 300,
    }


SESSION_STOP_GRACE = 10  # seconds between SIGTERM and SIGKILL
# The run's own deadline must fire before the queue's, which would leave the CLI orphaned.
SESSION_TASK_TIMEOUT = CLAUDEOPS_SESSION_TIMEOUT + 2 * SESSION_STOP_GRACE + 280
Q_CLUSTER: dict[str, Any] = {
    "name": "default",
    "orm": "default",
    "broker_class": "claudeops.workers.broker.HostBroker",
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "poll": 1,
    "guard_cycle": 1,
    "save_limit": 500,
    "label": "Task queue",
    **cluster(CLAUDEOPS_WORKERS, 300),
    "ALT_CLUSTERS": {"sessions": cluster(CLAUDEOPS_SESSION_WORKERS, SESSION_TASK_TIMEOUT)},
}

# The first backend refuses whoever failed too often, before the second one hashes a password.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "claudeops.roles.RightsBackend"]
AXES_HANDLER = "claudeops.sign_in.Failures"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 6
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "claudeops.sign_in.client_address"
AXES_CLIENT_STR_CALLABLE = "claudeops.sign_in.client_text"
AXES_LOCKOUT_CALLABLE = "claudeops.sign_in.locked_out"
AXES_SENSITIVE_PARAMETERS = ["username", "csrfmiddlewaretoken"]
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False  # claudeops.admin shows the failures
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "claudeops.formats"

STATIC_URL = "static/"
# Served from the packages themselves, without collectstatic. (A STATIC_ROOT that is never filled would cause a warning
# at every start; claudeops/static is found because claudeops is an app.)
WHITENOISE_USE_FINDERS = True

SECURE_COOKIES = not (DEBUG or CLAUDEOPS_PLAIN_HTTP)
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
SECURE_SSL_REDIRECT = SECURE_COOKIES
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if SECURE_COOKIES else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_COOKIES
SECURE_HSTS_PRELOAD = SECURE_COOKIES
if CLAUDEOPS_TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}

# A bulk action on a whole page of rows sends one field a row.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "filters": {"secrets": {"()": "claudeops.lib.masked_logs.MaskSecrets"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["secrets"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        name: {"handlers": ["stderr"], "level": CLAUDEOPS_LOG_LEVEL, "propagate": False}
        for name in ("claudeops", "memories", "sessions_app")
    },
}

os.environ.setdefault("PYTHONUNBUFFERED", "1")
