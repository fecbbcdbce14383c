"""Django's settings. Values from the environment are read by `claudeops.env`."""

from __future__ import annotations

import contextlib
import math
import os
from datetime import timedelta
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from claudeops.env import BASE_DIR, OBSERVE, read, tool_rules
from claudeops.secret import secret_key

DEBUG: bool = read("DEBUG")
CLAUDEOPS_DATA_DIR = read("CLAUDEOPS_DATA_DIR")
SECRET_KEY: str = read("SECRET_KEY") or secret_key(CLAUDEOPS_DATA_DIR)
ALLOWED_HOSTS: list[str] = read("ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS: list[str] = read("CSRF_TRUSTED_ORIGINS")
CLAUDEOPS_TRUSTED_PROXIES: int = read("CLAUDEOPS_TRUSTED_PROXIES")

# claudeops's own settings, by the names of the environment variables (README has the tables).
CLAUDEOPS_HOST: str = read("CLAUDEOPS_HOST")
CLAUDEOPS_PLAIN_HTTP: bool = read("CLAUDEOPS_PLAIN_HTTP")
CLAUDEOPS_DEMO: bool = read("CLAUDEOPS_DEMO")
CLAUDEOPS_WORKERS: int = read("CLAUDEOPS_WORKERS")
CLAUDEOPS_SESSION_WORKERS: int = read("CLAUDEOPS_SESSION_WORKERS")
CLAUDEOPS_LOG_ENTRY_DAYS: int = read("CLAUDEOPS_LOG_ENTRY_DAYS")
CLAUDEOPS_TELEMETRY_DAYS: int = read("CLAUDEOPS_TELEMETRY_DAYS")
CLAUDEOPS_METRICS_TOKEN: str = read("CLAUDEOPS_METRICS_TOKEN")
CLAUDEOPS_OTLP_ENDPOINT: str = read("CLAUDEOPS_OTLP_ENDPOINT")
CLAUDEOPS_OTLP_CONTENT: bool = read("CLAUDEOPS_OTLP_CONTENT")
CLAUDEOPS_BACKUP_DAILY: bool = read("CLAUDEOPS_BACKUP_DAILY")
CLAUDEOPS_BACKUP_KEEP: int = read("CLAUDEOPS_BACKUP_KEEP")
CLAUDEOPS_BACKUP_DIR = read("CLAUDEOPS_BACKUP_DIR")
CLAUDEOPS_CLAUDE_BIN: str = read("CLAUDEOPS_CLAUDE_BIN") or read("CLAUDE_BIN") or "claude"
CLAUDEOPS_CLAUDE_HOME: str = read("CLAUDEOPS_CLAUDE_HOME")
CLAUDEOPS_WORK_DIR: str = read("CLAUDEOPS_WORK_DIR") or str(CLAUDEOPS_DATA_DIR / "work")
CLAUDEOPS_PASS_ENV: list[str] = read("CLAUDEOPS_PASS_ENV")
CLAUDEOPS_TIER1_MODEL: str = read("CLAUDEOPS_TIER1_MODEL")
CLAUDEOPS_TIER2_MODEL: str = read("CLAUDEOPS_TIER2_MODEL")
CLAUDEOPS_TIER3_MODEL: str = read("CLAUDEOPS_TIER3_MODEL")
CLAUDEOPS_ALERT_AGENT: str = read("CLAUDEOPS_ALERT_AGENT")
CLAUDEOPS_MAX_TIER: int = read("CLAUDEOPS_MAX_TIER")
CLAUDEOPS_ALLOWED_TOOLS: list[str] = read("CLAUDEOPS_ALLOWED_TOOLS")
CLAUDEOPS_OBSERVE_TOOLS: list[str] = tool_rules.parse(OBSERVE)  # what a dry run may use
CLAUDEOPS_DISALLOWED_TOOLS: list[str] = read("CLAUDEOPS_DISALLOWED_TOOLS")
CLAUDEOPS_ADJUST_RELEVANCE: bool = read("CLAUDEOPS_ADJUST_RELEVANCE")
CLAUDEOPS_DRY_RUN: bool = read("CLAUDEOPS_DRY_RUN")
CLAUDEOPS_AGENT_MCP: bool = read("CLAUDEOPS_AGENT_MCP")
CLAUDEOPS_HOOK_URL: str = read("CLAUDEOPS_HOOK_URL")
CLAUDEOPS_SESSION_HOOKS: list[str] = read("CLAUDEOPS_SESSION_HOOKS")
CLAUDEOPS_INTERVAL: int = read("CLAUDEOPS_INTERVAL")
CLAUDEOPS_SESSION_TIMEOUT: int = read("CLAUDEOPS_SESSION_TIMEOUT")
CLAUDEOPS_STOP_GRACE: int = read("CLAUDEOPS_STOP_GRACE")
CLAUDEOPS_MAX_TURNS: int = read("CLAUDEOPS_MAX_TURNS")
CLAUDEOPS_MAX_BUDGET_USD: float = read("CLAUDEOPS_MAX_BUDGET_USD")
CLAUDEOPS_DAILY_BUDGET_USD: float = read("CLAUDEOPS_DAILY_BUDGET_USD")
CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS: bool = read("CLAUDEOPS_KEEP_SECRETS_IN_RAW_LOGS")
CLAUDEOPS_INCLUDE_SUBAGENTS: bool = read("CLAUDEOPS_INCLUDE_SUBAGENTS")
CLAUDEOPS_TRUSTED_MCP_SERVERS: list[str] = read("CLAUDEOPS_TRUSTED_MCP_SERVERS")
CLAUDEOPS_HOUSE_TOOLS: list[str] = read("CLAUDEOPS_HOUSE_TOOLS")
CLAUDEOPS_HOUSE_COMMANDS: list[str] = read("CLAUDEOPS_HOUSE_COMMANDS")
CLAUDEOPS_OUTSIDE_COMMANDS: list[str] = read("CLAUDEOPS_OUTSIDE_COMMANDS")
CLAUDEOPS_OUTSIDE_PATHS: list[str] = read("CLAUDEOPS_OUTSIDE_PATHS")
CLAUDEOPS_REPLAY_SPEED: float = read("CLAUDEOPS_REPLAY_SPEED")
CLAUDEOPS_MEMORY_BUDGET: int = read("CLAUDEOPS_MEMORY_BUDGET")
CLAUDEOPS_TIER1_MEMORY_BUDGET: int | None = read("CLAUDEOPS_TIER1_MEMORY_BUDGET")
CLAUDEOPS_TIER2_MEMORY_BUDGET: int | None = read("CLAUDEOPS_TIER2_MEMORY_BUDGET")
CLAUDEOPS_TIER3_MEMORY_BUDGET: int | None = read("CLAUDEOPS_TIER3_MEMORY_BUDGET")
CLAUDEOPS_MEMORY_RELEVANT_SHARE: float = read("CLAUDEOPS_MEMORY_RELEVANT_SHARE")
CLAUDEOPS_MEMORY_RELEVANT_MIN_CONFIDENCE: float = read("CLAUDEOPS_MEMORY_RELEVANT_MIN_CONFIDENCE")
CLAUDEOPS_CURATED_BUDGET: int = read("CLAUDEOPS_CURATED_BUDGET")
CLAUDEOPS_KNOWLEDGE_BUDGET: int = read("CLAUDEOPS_KNOWLEDGE_BUDGET")
CLAUDEOPS_KNOWLEDGE_MOST: int = read("CLAUDEOPS_KNOWLEDGE_MOST")
CLAUDEOPS_KNOWLEDGE_PROFILE: str = read("CLAUDEOPS_KNOWLEDGE_PROFILE")
CLAUDEOPS_EMBEDDINGS: str = read("CLAUDEOPS_EMBEDDINGS")
CLAUDEOPS_EMBEDDINGS_INSTALL: bool = read("CLAUDEOPS_EMBEDDINGS_INSTALL")
CLAUDEOPS_MODELS_DIR = read("CLAUDEOPS_MODELS_DIR") or CLAUDEOPS_DATA_DIR / "models"
CLAUDEOPS_EMBEDDINGS_URL: str = read("CLAUDEOPS_EMBEDDINGS_URL")
CLAUDEOPS_EMBEDDINGS_MODEL: str = read("CLAUDEOPS_EMBEDDINGS_MODEL")
CLAUDEOPS_EMBEDDINGS_KEY: str = read("CLAUDEOPS_EMBEDDINGS_KEY")
CLAUDEOPS_BRIEFING_BUDGET: int = read("CLAUDEOPS_BRIEFING_BUDGET")
CLAUDEOPS_PROMPT_MEMORIES: int = read("CLAUDEOPS_PROMPT_MEMORIES")
CLAUDEOPS_RECALL_AGE: str = read("CLAUDEOPS_RECALL_AGE")
CLAUDEOPS_RECALL_REWRITE_URL: str = read("CLAUDEOPS_RECALL_REWRITE_URL")
CLAUDEOPS_RECALL_REWRITE_MODEL: str = read("CLAUDEOPS_RECALL_REWRITE_MODEL")
CLAUDEOPS_RECALL_REWRITE_KEY: str = read("CLAUDEOPS_RECALL_REWRITE_KEY")
CLAUDEOPS_RECALL_REWRITE_TIMEOUT: float = read("CLAUDEOPS_RECALL_REWRITE_TIMEOUT")
CLAUDEOPS_VECTOR_SEARCH: str = read("CLAUDEOPS_VECTOR_SEARCH")
if CLAUDEOPS_EMBEDDINGS == "endpoint" and not (CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL):
    raise ImproperlyConfigured(
        "CLAUDEOPS_EMBEDDINGS is endpoint; CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL must say which."
    )
CLAUDEOPS_TRUST: str = read("CLAUDEOPS_TRUST")
CLAUDEOPS_MATCHING: str = read("CLAUDEOPS_MATCHING")
CLAUDEOPS_MATCHING_JUDGE_URL: str = read("CLAUDEOPS_MATCHING_JUDGE_URL")
CLAUDEOPS_MATCHING_JUDGE_MODEL: str = read("CLAUDEOPS_MATCHING_JUDGE_MODEL")
CLAUDEOPS_MATCHING_JUDGE_KEY: str = read("CLAUDEOPS_MATCHING_JUDGE_KEY")
CLAUDEOPS_MODEL_OBSERVER: str = read("CLAUDEOPS_MODEL_OBSERVER")
CLAUDEOPS_MODEL_CLASSIFIER: str = read("CLAUDEOPS_MODEL_CLASSIFIER")
CLAUDEOPS_MODEL_REFLECTOR: str = read("CLAUDEOPS_MODEL_REFLECTOR")
CLAUDEOPS_MODEL_TRIAGE: str = read("CLAUDEOPS_MODEL_TRIAGE")
CLAUDEOPS_MODEL_URL: str = read("CLAUDEOPS_MODEL_URL")
CLAUDEOPS_MODEL_KEY: str = read("CLAUDEOPS_MODEL_KEY")
CLAUDEOPS_MODEL_RECORDINGS: str = read("CLAUDEOPS_MODEL_RECORDINGS")
CLAUDEOPS_MODEL_DAILY_USD: float = read("CLAUDEOPS_MODEL_DAILY_USD")
CLAUDEOPS_MODEL_BUDGETS: dict[str, float] = read("CLAUDEOPS_MODEL_BUDGETS")
CLAUDEOPS_MODEL_DAILY_CALLS: int = read("CLAUDEOPS_MODEL_DAILY_CALLS")
CLAUDEOPS_OBSERVE: bool = read("CLAUDEOPS_OBSERVE")
CLAUDEOPS_TRANSCRIPT_FOLDERS: list[str] = read("CLAUDEOPS_TRANSCRIPT_FOLDERS")
CLAUDEOPS_OBSERVE_EXCLUDE: list[str] = read("CLAUDEOPS_OBSERVE_EXCLUDE")
CLAUDEOPS_OBSERVE_IDLE: float = read("CLAUDEOPS_OBSERVE_IDLE")
CLAUDEOPS_MAINTENANCE_HOUR: int = read("CLAUDEOPS_MAINTENANCE_HOUR")
CLAUDEOPS_MAINTENANCE_ZONE: str = read("CLAUDEOPS_MAINTENANCE_ZONE")
CLAUDEOPS_MEMORY_FILE: str = read("CLAUDEOPS_MEMORY_FILE")
CLAUDEOPS_CURATE: bool = read("CLAUDEOPS_CURATE")
CLAUDEOPS_REFLECT_AFTER: int = read("CLAUDEOPS_REFLECT_AFTER")
CLAUDEOPS_REFLECT_EVERY: int = read("CLAUDEOPS_REFLECT_EVERY")
CLAUDEOPS_TASK_WEBHOOK: str = read("CLAUDEOPS_TASK_WEBHOOK")
CLAUDEOPS_TASK_FORMAT: str = read("CLAUDEOPS_TASK_FORMAT")
CLAUDEOPS_TASK_TOKEN: str = read("CLAUDEOPS_TASK_TOKEN")
CLAUDEOPS_PUBLIC_URL: str = read("CLAUDEOPS_PUBLIC_URL")
CLAUDEOPS_TRIAGE_BATCH: int = read("CLAUDEOPS_TRIAGE_BATCH")
CLAUDEOPS_PROPOSAL_DAYS: int = read("CLAUDEOPS_PROPOSAL_DAYS")
CLAUDEOPS_RESTART_LIMIT: int = read("CLAUDEOPS_RESTART_LIMIT")
CLAUDEOPS_RESTART_WINDOW_HOURS: float = read("CLAUDEOPS_RESTART_WINDOW_HOURS")
CLAUDEOPS_REDEPLOYMENT_LIMIT: int = read("CLAUDEOPS_REDEPLOYMENT_LIMIT")
CLAUDEOPS_REDEPLOYMENT_WINDOW_HOURS: float = read("CLAUDEOPS_REDEPLOYMENT_WINDOW_HOURS")

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
ASGI_APPLICATION = "claudeops.asgi.application"
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


DATABASES = {"default": database(read("DATABASE_URL"))}
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


# The run's own deadline must fire before the queue's, which would leave the CLI orphaned.
SESSION_TASK_TIMEOUT = CLAUDEOPS_SESSION_TIMEOUT + 2 * CLAUDEOPS_STOP_GRACE + 280
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
USE_TZ = True
FORMAT_MODULE_PATH = "claudeops.formats"

APPEND_SLASH = True
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
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
CLAUDEOPS_TRUST_PROXY: bool = read("CLAUDEOPS_TRUST_PROXY")
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
        name: {"handlers": ["stderr"], "level": read("CLAUDEOPS_LOG_LEVEL"), "propagate": False}
        for name in ("claudeops", "memories", "sessions_app")
    },
}

os.environ.setdefault("PYTHONUNBUFFERED", "1")
