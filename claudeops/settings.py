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

from claudeops import env
from claudeops.env import BASE_DIR
from claudeops.secret import secret_key

# == What Django itself reads ==
SECRET_KEY: str = env.read("SECRET_KEY", env.text, "", "made once, kept in the data folder")
"""Signs cookies and queued tasks. `SECRET_KEY_FILE` names a file instead."""
DEBUG = env.read("DEBUG", env.boolean, False)
"""Django's debug pages. Never in production."""
ALLOWED_HOSTS = env.read("ALLOWED_HOSTS", env.names, ["localhost", "127.0.0.1", "[::1]"])
"""Host names the web server answers to."""
CSRF_TRUSTED_ORIGINS = env.read("CSRF_TRUSTED_ORIGINS", env.names, [])
"""Origins (https://ops.example.org) whose forms are accepted behind a proxy."""
database_url = env.read("DATABASE_URL", env.text, "", "a SQLite file in the data folder")
"""`postgres://user:password@host/name`, or `sqlite:////path/to/file`."""

# == Paths, host and workers ==
CLAUDEOPS_DATA_DIR = env.read("CLAUDEOPS_DATA_DIR", env.folder, BASE_DIR / ".claudeops", ".claudeops in the checkout")
"""Folder of the database, the raw logs and the secret key."""
CLAUDEOPS_HOST = env.read("CLAUDEOPS_HOST", env.text, socket.gethostname(), "the machine's host name")
"""The name of this host, written on the sessions it runs."""
CLAUDEOPS_PLAIN_HTTP = env.read("CLAUDEOPS_PLAIN_HTTP", env.boolean, False)
"""Serve over plain http: no secure cookies, no redirect to https. `up` sets it for a loopback address."""
CLAUDEOPS_TRUST_PROXY = env.read("CLAUDEOPS_TRUST_PROXY", env.boolean, False)
"""Trust `X-Forwarded-Proto` from the proxy in front. Only when the proxy always sets it."""
CLAUDEOPS_TRUSTED_PROXIES = env.read("CLAUDEOPS_TRUSTED_PROXIES", env.whole(0, 5), 0)
"""How many proxies in front append the address that they see to `X-Forwarded-For`. Sign-in limits count by the
address before theirs; with 0 by that of the connection."""
CLAUDEOPS_LOG_LEVEL = env.read("CLAUDEOPS_LOG_LEVEL", env.one_of("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
"""Lowest level that is logged to stderr."""
CLAUDEOPS_WORKERS = env.read("CLAUDEOPS_WORKERS", env.whole(1, 64), 2)
"""Short tasks (schedules, sweeps, reaping) that may run at once on this host."""
CLAUDEOPS_SESSION_WORKERS = env.read("CLAUDEOPS_SESSION_WORKERS", env.whole(1, 64), 2)
"""Sessions that may run at once on this host."""
CLAUDEOPS_LOG_ENTRY_DAYS = env.read("CLAUDEOPS_LOG_ENTRY_DAYS", env.whole(1, 3650), 30)
"""Days after which the readable log of an ended session is pruned; the raw log stays."""
CLAUDEOPS_METRICS_TOKEN = env.read("CLAUDEOPS_METRICS_TOKEN", env.text, "")
"""The bearer token with which Prometheus reads `/metrics`. Without it there is no such page."""
CLAUDEOPS_OTLP_ENDPOINT = env.read("CLAUDEOPS_OTLP_ENDPOINT", env.web_address, "")
"""Address of an OpenTelemetry collector (OTLP over HTTP, like `http://127.0.0.1:4318`). Without it nothing is
exported. Headers are taken from `OTEL_EXPORTER_OTLP_HEADERS`."""
CLAUDEOPS_OTLP_CONTENT = env.read("CLAUDEOPS_OTLP_CONTENT", env.boolean, False)
"""Export the prompts and summaries of sessions too, credentials masked."""
CLAUDEOPS_BACKUP_KEEP = env.read("CLAUDEOPS_BACKUP_KEEP", env.whole(0, 3650), 7)
"""Daily backups (UTC) that are kept on SQLite; 0 = none is made. On PostgreSQL nothing is made by itself."""
CLAUDEOPS_BACKUP_DIR: Path | None = env.read("CLAUDEOPS_BACKUP_DIR", env.folder, None, "`backups` in the data folder")
"""Folder of the backups. On another disk they survive the loss of this one."""

# == Agents and sessions ==
CLAUDEOPS_CLAUDE_BIN = (
    env.read("CLAUDEOPS_CLAUDE_BIN", env.text, "", "`CLAUDE_BIN`, or `claude` on the PATH")
    or os.environ.get("CLAUDE_BIN")
    or "claude"
)
"""The Claude Code CLI."""
CLAUDEOPS_CLAUDE_HOME = env.read(
    "CLAUDEOPS_CLAUDE_HOME", env.text, os.environ.get("HOME", ""), "the HOME of the worker"
)
"""HOME of the CLI, where it keeps its login."""
CLAUDEOPS_WORK_DIR = env.read("CLAUDEOPS_WORK_DIR", env.text, "", "`work` in the data folder") or str(
    CLAUDEOPS_DATA_DIR / "work"
)
"""The folder sessions start in, unless their agent names one."""
CLAUDEOPS_PASS_ENV = env.read("CLAUDEOPS_PASS_ENV", env.names, [])
"""Further environment variables handed to the CLI (agents can read them). `ANTHROPIC_*` is always handed on."""
CLAUDEOPS_TIER1_MODEL = env.read("CLAUDEOPS_TIER1_MODEL", env.text, "haiku")
"""The model of tier 1 (observe)."""
CLAUDEOPS_TIER2_MODEL = env.read("CLAUDEOPS_TIER2_MODEL", env.text, "sonnet")
"""The model of tier 2 (investigate)."""
CLAUDEOPS_TIER3_MODEL = env.read("CLAUDEOPS_TIER3_MODEL", env.text, "opus")
"""The model of tier 3 (remediate)."""
CLAUDEOPS_ALERT_AGENT = env.read("CLAUDEOPS_ALERT_AGENT", env.text, "")
"""The agent (slug) of alerts that name none; without it they are refused."""
CLAUDEOPS_MAX_TIER = env.read("CLAUDEOPS_MAX_TIER", env.whole(1, 3), 3)
"""The highest tier an escalation may reach."""
CLAUDEOPS_OBSERVE_TOOLS = env.tool_rules.parse(
    "Read,Grep,Glob,Bash(docker ps *),Bash(docker inspect *),Bash(docker logs *),"
    "Bash(systemctl status *),Bash(journalctl -u *),Bash(df *),Bash(free *),Bash(uptime)"
)  # what a dry run may use: reading and looking only
CLAUDEOPS_ALLOWED_TOOLS = env.read("CLAUDEOPS_ALLOWED_TOOLS", env.tool_rules, CLAUDEOPS_OBSERVE_TOOLS)
"""Tool rules of agents that have none of their own, comma-separated. By default they read and look only."""
CLAUDEOPS_DISALLOWED_TOOLS = env.read("CLAUDEOPS_DISALLOWED_TOOLS", env.tool_rules, [])
"""Tool rules denied to every agent, whatever is allowed."""
CLAUDEOPS_ADJUST_RELEVANCE = env.read("CLAUDEOPS_ADJUST_RELEVANCE", env.boolean, False)
"""Once a week, workers learn the relevance of project memories from the sessions that used them."""
CLAUDEOPS_DRY_RUN = env.read("CLAUDEOPS_DRY_RUN", env.boolean, False)
"""Sessions observe only: tools that change things are denied, escalations are recorded but not started."""
CLAUDEOPS_AGENT_MCP = env.read("CLAUDEOPS_AGENT_MCP", env.boolean, False)
"""Give every session the MCP server, so that it can recall and remember while it works."""
CLAUDEOPS_HOOK_URL = env.read("CLAUDEOPS_HOOK_URL", env.web_address, "", "set by `up` on a loopback address")
"""Address at which the CLI's hooks reach this web server, like `http://127.0.0.1:8000`. Without it sessions run
without hooks."""
CLAUDEOPS_SESSION_HOOKS = env.read("CLAUDEOPS_SESSION_HOOKS", env.hook_sets, ["agents", "decisions"])
"""The hooks of our own sessions: `agents` (subagents are told their memory and learn), `cooldowns` (a Bash command that
a cooldown forbids is refused) and `decisions` (an edit names the decisions that govern the file)."""
CLAUDEOPS_INTERVAL = env.read("CLAUDEOPS_INTERVAL", env.whole(60, 2_592_000), 3600)
"""Seconds between runs of an interval agent without its own."""
CLAUDEOPS_SESSION_TIMEOUT = env.read("CLAUDEOPS_SESSION_TIMEOUT", env.whole(10, 86_400), 3600)
"""Seconds after which a session is ended (an agent may have less)."""
CLAUDEOPS_MAX_TURNS = env.read("CLAUDEOPS_MAX_TURNS", env.whole(1, 1000), 50)
"""Turns of a session, unless its agent says otherwise."""
CLAUDEOPS_MAX_BUDGET_USD = env.read("CLAUDEOPS_MAX_BUDGET_USD", env.number(0.01, 10_000), 2.0)
"""Dollars a session may cost, unless its agent says otherwise."""
CLAUDEOPS_DAILY_BUDGET_USD = env.read("CLAUDEOPS_DAILY_BUDGET_USD", env.number(0, 1_000_000), 20.0)
"""Dollars of a UTC day for all sessions; beyond it scheduled sessions wait. 0 = no limit."""
CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS = env.read("CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS", env.boolean, False)
"""Leave credentials in the raw logs of ended sessions. The database never holds them."""
CLAUDEOPS_INCLUDE_SUBAGENTS = env.read("CLAUDEOPS_INCLUDE_SUBAGENTS", env.boolean, False)
"""Read markers from subagents' text too."""
CLAUDEOPS_REPLAY_SPEED = env.read("CLAUDEOPS_REPLAY_SPEED", env.number(0, 1000), 1.0)
"""How fast recorded streams are played: 1 = as recorded, 0 = at once."""

# == Memory ==
CLAUDEOPS_MEMORY_BUDGET = env.read("CLAUDEOPS_MEMORY_BUDGET", env.whole(0, 200_000), 2000)
"""Tokens (characters / 4) of memory in a prompt, unless its agent says otherwise; 0 = none."""
CLAUDEOPS_CURATED_BUDGET = env.read("CLAUDEOPS_CURATED_BUDGET", env.whole(0, 200_000), 1000)
"""Tokens (characters / 4) of the curated memory (MEMORY.md) in a prompt and in a briefing; 0 = none."""
CLAUDEOPS_TRUST = env.read("CLAUDEOPS_TRUST", env.one_of("open", "guarded", "strict"), "guarded")
"""Which memories a prompt is told: `open` (all that the gate allows), `guarded` (not those about the agent, its
rights and reports, credentials, foreign hosts, removal, protection or standing orders whose session had read
outside text, until a person or an independent session confirms them), or `strict` (only confirmed ones)."""
CLAUDEOPS_MATCHING = env.read("CLAUDEOPS_MATCHING", env.one_of("semantic", "structural", "supersede"), "semantic")
"""How an agent's statement is compared with known memories: `semantic` (by its meaning), `structural` (it confirms
the first memory of its service and category, whose text stays), or `supersede` (a new one supersedes the others
of its service and category)."""

# == Embeddings and recall ==
CLAUDEOPS_EMBEDDINGS = env.read("CLAUDEOPS_EMBEDDINGS", env.one_of("local", "endpoint", "off"), "local")
"""Source of the vectors: `local` (a model on this machine), `endpoint` (any OpenAI-compatible one), or `off` (search
by keywords alone)."""
CLAUDEOPS_EMBEDDINGS_INSTALL = env.read("CLAUDEOPS_EMBEDDINGS_INSTALL", env.boolean, True)
"""Workers download the local model when it is missing (90 MB, once)."""
CLAUDEOPS_MODELS_DIR = env.read(
    "CLAUDEOPS_MODELS_DIR", env.folder, CLAUDEOPS_DATA_DIR / "models", "`models` in the data folder"
)
"""Folder of the local models. The demo uses the operator's."""
CLAUDEOPS_EMBEDDINGS_URL = env.read("CLAUDEOPS_EMBEDDINGS_URL", env.web_address, "")
"""The endpoint: `https://host/v1`, or the full address of its `/embeddings`."""
CLAUDEOPS_EMBEDDINGS_MODEL = env.read("CLAUDEOPS_EMBEDDINGS_MODEL", env.text, "")
"""The model's name at the endpoint."""
CLAUDEOPS_EMBEDDINGS_KEY = env.read("CLAUDEOPS_EMBEDDINGS_KEY", env.text, "")
"""The endpoint's key, sent as a bearer token and never logged or shown."""
CLAUDEOPS_BRIEFING_BUDGET = env.read("CLAUDEOPS_BRIEFING_BUDGET", env.whole(0, 20_000), 1500)
"""Tokens (characters / 4) of the briefing that a developer's session gets when it starts; 0 = none."""
CLAUDEOPS_PROMPT_MEMORIES = env.read("CLAUDEOPS_PROMPT_MEMORIES", env.whole(0, 10), 3)
"""Most memories that a prompt of a developer's session brings, those that match it well; 0 = none."""

# == Models ==
CLAUDEOPS_MODEL_OBSERVER = env.read("CLAUDEOPS_MODEL_OBSERVER", env.text, "claude:haiku")
"""The model that distils sessions: `claude:NAME` (by the Claude Code CLI and its login), `http:NAME` (at
`CLAUDEOPS_MODEL_URL`) or `recorded:NAME` (from files). A name alone is one of the CLI's; empty = none."""
CLAUDEOPS_MODEL_CLASSIFIER = env.read("CLAUDEOPS_MODEL_CLASSIFIER", env.text, "claude:haiku")
"""The model that chooses a category."""
CLAUDEOPS_MODEL_REFLECTOR = env.read("CLAUDEOPS_MODEL_REFLECTOR", env.text, "claude:sonnet")
"""The model that proposes changes to the curated memory."""
CLAUDEOPS_MODEL_TRIAGE = env.read("CLAUDEOPS_MODEL_TRIAGE", env.text, "claude:haiku")
"""The model that decides on proposals."""
CLAUDEOPS_MODEL_JUDGE = env.read("CLAUDEOPS_MODEL_JUDGE", env.text, "")
"""The model that judges the pairs which comparison left unsure; empty = a person does."""
CLAUDEOPS_MODEL_REWRITER = env.read("CLAUDEOPS_MODEL_REWRITER", env.text, "")
"""The model, a fast one, that rewrites the query of a recall; empty = no rewriting."""
CLAUDEOPS_MODEL_URL = env.read("CLAUDEOPS_MODEL_URL", env.web_address, "")
"""Address for `http:` models: `…/v1/chat/completions` (OpenAI's API) or `…/v1/messages` (Anthropic's)."""
CLAUDEOPS_MODEL_KEY = env.read("CLAUDEOPS_MODEL_KEY", env.text, "")
"""The key for it; never logged or shown."""
CLAUDEOPS_MODEL_RECORDINGS = env.read("CLAUDEOPS_MODEL_RECORDINGS", env.text, "")
"""The folder of `recorded:` models: `ROLE/HASH.txt` holds the answer to the prompt with this SHA-256."""
CLAUDEOPS_MODEL_DAILY_USD = env.read("CLAUDEOPS_MODEL_DAILY_USD", env.budgets, {"": 2.0}, "`2`")
"""US dollars that each role may spend in a day (UTC); it is not asked when they are spent. 0 = no limit."""
CLAUDEOPS_MODEL_DAILY_CALLS = env.read("CLAUDEOPS_MODEL_DAILY_CALLS", env.whole(0, 1_000_000), 2000)
"""Calls that each role may make in a day (UTC), for models that state no cost. 0 = no limit."""

# == Observation of sessions ==
CLAUDEOPS_OBSERVE = env.read("CLAUDEOPS_OBSERVE", env.boolean, True)
"""Learn from whole sessions: those that ran here, and those whose hooks or folders are known. The command `observe`
works without it."""
CLAUDEOPS_TRANSCRIPT_FOLDERS = env.read("CLAUDEOPS_TRANSCRIPT_FOLDERS", env.names, [])
"""Further folders of transcripts, such as ~/.claude/projects, beside those for which hooks were installed."""
CLAUDEOPS_OBSERVE_EXCLUDE = env.read("CLAUDEOPS_OBSERVE_EXCLUDE", env.names, [])
"""What is not observed: globs, such as */private/*, of transcripts and of the folders in which sessions work."""

# == Curated memory ==
CLAUDEOPS_CURATE = env.read("CLAUDEOPS_CURATE", env.boolean, True)
"""Curate by schedule: reflect on observations, decide on proposals, promote into MEMORY.md, maintain at night. The
command `curate` works without it."""
CLAUDEOPS_TASK_WEBHOOK = env.read("CLAUDEOPS_TASK_WEBHOOK", env.web_address, "")
"""Address to which a task item is sent for each proposal that waits for a person; empty = none. For GitHub
`https://api.github.com/repos/OWNER/NAME/issues`, for Todoist `https://api.todoist.com/api/v1/tasks`."""
CLAUDEOPS_TASK_FORMAT = env.read("CLAUDEOPS_TASK_FORMAT", env.one_of("json", "github", "todoist"), "json")
"""Form of a task item: plain JSON, an issue of GitHub, or a task of Todoist."""
CLAUDEOPS_TASK_TOKEN = env.read("CLAUDEOPS_TASK_TOKEN", env.text, "")
"""The bearer token for it; never logged or shown."""
CLAUDEOPS_PUBLIC_URL = env.read("CLAUDEOPS_PUBLIC_URL", env.web_address, "")
"""Address at which people reach this installation, for links in task items; empty = the command is named."""
CLAUDEOPS_MAINTENANCE_HOUR = env.read("CLAUDEOPS_MAINTENANCE_HOUR", env.hour, (3, "UTC"), "`3 UTC`")
"""Hour of the day at which the nightly maintenance begins."""
CLAUDEOPS_MEMORY_FILE = env.read(
    "CLAUDEOPS_MEMORY_FILE", env.markdown_file, "", "`memory/MEMORY.md` in the data folder"
)
"""The global MEMORY.md in a git repository of your own. A project's is set in the project."""
CLAUDEOPS_VAULT: Path | None = env.read("CLAUDEOPS_VAULT", env.folder, None, "`vault` in the data folder")
"""Folder in a git repository of your own for the files of the library: the journal, notes, summaries."""

# == Cooldowns ==
CLAUDEOPS_RESTART_LIMIT = env.read("CLAUDEOPS_RESTART_LIMIT", env.limit, (2, 4.0), "`2/4`")
"""Restarts of a service."""
CLAUDEOPS_REDEPLOYMENT_LIMIT = env.read("CLAUDEOPS_REDEPLOYMENT_LIMIT", env.limit, (1, 24.0), "`1/24`")
"""Redeployments of a service."""

# == Set by the commands themselves ==
CLAUDEOPS_DEMO = env.read("CLAUDEOPS_DEMO", env.boolean, False)
"""Marks every page as a demo. Set by `up --demo` for its own processes."""

env.refuse_old(os.environ)
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
        config = dict(environ.Env.db_url_config(url))
    except Exception as error:
        raise ImproperlyConfigured("DATABASE_URL cannot be read as a database URL.") from error
    engine = config.get("ENGINE", "")
    if engine == "django.db.backends.sqlite3":
        config["OPTIONS"] = {**SQLITE_OPTIONS, **config.get("OPTIONS", {})}
        # The web server's thread keeps its connection: a new one reads the whole schema first.
        config["CONN_MAX_AGE"] = 60
        # A real file, so that tests meet the same locks and pragmas as production.
        config["TEST"] = {"NAME": str(CLAUDEOPS_DATA_DIR / "test.sqlite3")}
    elif engine == "django.db.backends.postgresql":
        config["CONN_MAX_AGE"] = 60
        config["CONN_HEALTH_CHECKS"] = True
        config.get("OPTIONS", {}).pop("prepare_threshold", None)  # no statement is prepared
    else:
        raise ImproperlyConfigured(
            f"DATABASE_URL names the engine {engine or 'of no known kind'}; allowed are postgres:// and sqlite://."
        )
    return config


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
    "broker_class": "claudeops.workers.worker.HostBroker",
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
    "filters": {"secrets": {"()": "claudeops.lib.masked.MaskSecrets"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["secrets"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        name: {"handlers": ["stderr"], "level": CLAUDEOPS_LOG_LEVEL, "propagate": False}
        for name in ("claudeops", "memories", "sessions_app")
    },
}

os.environ.setdefault("PYTHONUNBUFFERED", "1")
