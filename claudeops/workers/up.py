"""`manage.py up`: prepare the database and the first account, then become the supervisor of web server and worker."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import secrets
import signal
import socket
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, NoReturn

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connections, transaction
from django.http.request import validate_host

from claudeops.env import BASE_DIR, boolean
from claudeops.lib import database_version, outage
from claudeops.lib.cli import Refusal
from claudeops.workers.schedules import sync_schedules
from claudeops.workers.supervisor import SIGNALS, Child, Plan
from sessions_app.checks import cli_messages
from sessions_app.demo.setup import ANSWERS, set_up
from sessions_app.models import Agent

USER = "operator"
FILE = "first-sign-in.txt"

NOTE = """The first account of claudeops, created by `manage.py up`.

user:     {user}
password: {password}

Change the password after signing in (/admin/password_change/), then remove this file. `up` removes it
once the account has another password.
"""


@dataclass(frozen=True, slots=True)
class FirstSignIn:
    """How to sign in. `password` is None once the operator has set another."""

    user: str
    password: str | None
    file: Path


def first_account(data_dir: Path) -> FirstSignIn:
    """Create the account `operator` when there is no account; return its password while it is the first one.

    Deletes the file with a changed password. Raises OSError, and creates no account, when it cannot write the file.
    """
    file = data_dir / FILE
    users = get_user_model()._default_manager
    with transaction.atomic():
        if not users.exists():
            fresh = secrets.token_urlsafe(12)
            _write(file, NOTE.format(user=USER, password=fresh))
            get_user_model().objects.create_superuser(USER, password=fresh)
            return FirstSignIn(USER, fresh, file)
    password = _noted(file)
    account = users.filter(username=USER, is_active=True).first()
    if password is not None and (account is None or not account.check_password(password)):
        file.unlink(missing_ok=True)
        password = None
    return FirstSignIn(USER, password, file)


def _write(file: Path, text: str) -> None:
    """Write the file atomically and never readable by others."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(text)
    draft.replace(file)


def _noted(file: Path) -> str | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((line.removeprefix("password:").strip() for line in lines if line.startswith("password:")), None)


DEMO_FOLDER = "demo"
# The operator's own database and folders, which the demo never uses.
MODELS = ("CLAUDEOPS_MODEL_CLASSIFIER", "CLAUDEOPS_MODEL_REFLECTOR", "CLAUDEOPS_MODEL_TRIAGE")
OPERATORS_OWN = ("DATABASE_URL", "DATABASE_URL_FILE", "CLAUDEOPS_DATA_DIR_FILE", "CLAUDEOPS_WORK_DIR")

WEB_PROCESSES, WEB_THREADS = 1, 8

SUPERVISOR = (
    "import sys; sys.path.insert(0, sys.argv[1]); from claudeops.workers import supervisor; "
    "sys.exit(supervisor.main(int(sys.argv[2])))"
)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something missing that agents need; `fix` says what to do."""

    what: str
    fix: str


def up(host: str, port: int, *, demo: bool) -> NoReturn:
    """Prepare everything and become the supervisor. With `demo`, the settings must be the demo's (`restart_as_demo`).

    Raises Refusal: before anything is made, when the port is in use or another `up` has the data folder.
    """
    data_dir = Path(settings.CLAUDEOPS_DATA_DIR)
    require_free(host, port)
    lock = lock_data_folder(data_dir)
    database = str(settings.DATABASES["default"]["ENGINE"]).rpartition(".")[2]
    print(f"Preparing the database ({database}) ...", flush=True)  # noqa: T201
    try:
        if database_version.is_earlier():
            raise Refusal("earlier_version", database_version.EARLIER, database_version.EXPORT)
        call_command("migrate", interactive=False, verbosity=0)
        sync_schedules()
        sign_in = first_account(data_dir)
        if demo:
            set_up()
    except DatabaseError as error:
        cause = outage.behind(error)
        message = cause.message if cause else f"The database does not answer as it should: {error}"
        raise Refusal("database", message, cause.fix if cause else "") from error
    except OSError as error:
        if outage.named_in(error):
            raise
        raise Refusal("data_folder", f"The data folder {data_dir} cannot be written: {error.strerror}.") from error
    address = f"http://{in_url(reached_at(host))}:{port}/"
    text = welcome(
        url=address,
        sign_in=sign_in,
        data_dir=data_dir,
        database=database,
        demo=demo,
        missing=[] if demo else _what_agents_lack(address),
        warnings=host_warnings(host, os.environ, settings.ALLOWED_HOSTS),
    )
    connections.close_all()
    children = [
        Child("web server", web_argv(host, port), web_environment(host, os.environ), stop_within=15),
        # Everything ends together, so running sessions are stopped too.
        Child(
            "worker",
            [sys.executable, str(BASE_DIR / "manage.py"), "runworker", "--on-stop", "stop"],
            worker_environment(host, port, os.environ, settings.ALLOWED_HOSTS),
        ),
    ]
    _become_supervisor(Plan(children, reached_at(host), port, text), keep_open=lock.fileno())


def _what_agents_lack(address: str) -> list[Missing]:
    gaps = [Missing(message.msg, message.hint or "") for message in cli_messages()]
    if not Agent.objects.exists():
        add = f"{address}admin/sessions_app/agent/add/"
        fix = f"Add one at {add}, or run a single session: manage.py session run --tier 1"
        gaps.append(Missing("There is no agent yet.", fix))
    return gaps


def _become_supervisor(plan: Plan, *, keep_open: int) -> NoReturn:
    """Replace this process, which has all of Django, by one that only waits; `keep_open` is a file descriptor."""
    # In a file: others may read a command line, and the welcome names a password.
    with tempfile.TemporaryFile("w+") as file:
        json.dump(asdict(plan), file)
        file.seek(0)
        for descriptor in (file.fileno(), keep_open):
            os.set_inheritable(descriptor, True)
        sys.stdout.flush()
        # A Ctrl-C from here on waits until the supervisor handles it.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        argv = [sys.executable, "-c", SUPERVISOR, str(BASE_DIR), str(file.fileno())]
        os.execv(sys.executable, argv)  # noqa: S606  (no shell)


def restart_as_demo(data_dir: Path) -> NoReturn:
    """Start this command again in the environment of the demo: the settings were read for the operator's own data."""
    sys.stdout.flush()
    argv = [sys.executable, str(BASE_DIR / "manage.py"), *sys.argv[1:]]
    os.execve(sys.executable, argv, demo_environment(os.environ, data_dir))  # noqa: S606  (no shell)


# Checks and environment.


def require_free(host: str, port: int) -> None:
    """Raise Refusal, with what to do instead, when the web server cannot listen on `host`:`port`."""
    try:
        family, kind, protocol, _, address = _addresses(host, port)[0]
    except OSError as error:
        raise Refusal(
            "no_such_host", f"{host!r} is not an address of this machine ({error.strerror}).", "Leave --host out."
        ) from None
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the web server does
        try:
            probe.bind(address)
        except PermissionError:
            raise Refusal(
                "port_not_allowed", f"Port {port} may only be used by root.", "Use one above 1023: --port 8000."
            ) from None
        except OSError as error:
            raise Refusal(
                "port_taken",
                f"Port {port} on {host} cannot be used: {error.strerror}.",
                f"Stop the program that listens there, or use another: --port {port + 1 if port < 65535 else 8000}.",
            ) from None


def is_loopback(host: str) -> bool:
    try:
        addresses = _addresses(host, 0)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in addresses)


def _addresses(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    flags = socket.AI_PASSIVE
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)  # type: ignore[return-value]


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def reached_at(host: str) -> str:
    """Return an address at which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def web_argv(host: str, port: int) -> list[str]:
    return [
        sys.executable,
        *("-m", "gunicorn", "claudeops.wsgi"),
        *("--chdir", str(BASE_DIR)),
        *("--bind", f"{in_url(host)}:{port}"),
        *("--workers", str(WEB_PROCESSES), "--threads", str(WEB_THREADS)),
        *("--graceful-timeout", "5"),
        *("--limit-request-line", "8190"),  # a list's poll names up to 250 rows
        *("--log-level", "warning"),
        "--no-control-socket",
    ]


def web_environment(host: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return variables to add for the web server: plain HTTP on loopback, unless `given` sets how it is served."""
    names = ("CLAUDEOPS_PLAIN_HTTP", "CLAUDEOPS_PLAIN_HTTP_FILE", "CLAUDEOPS_TRUST_PROXY")
    return {"CLAUDEOPS_PLAIN_HTTP": "1"} if is_loopback(host) and not any(name in given for name in names) else {}


def worker_environment(host: str, port: int, given: Mapping[str, str], allowed_hosts: Sequence[str]) -> dict[str, str]:
    """Return variables to add for the worker: where the hooks of sessions reach this web server.

    None unless it answers there over plain HTTP, and none when `given` names an address.
    """
    address = in_url(reached_at(host))
    names = ("CLAUDEOPS_HOOK_URL", "CLAUDEOPS_HOOK_URL_FILE")
    plain = web_environment(host, given) or boolean.parse(given.get("CLAUDEOPS_PLAIN_HTTP", ""))
    if any(name in given for name in names) or not plain or not validate_host(address, allowed_hosts):
        return {}
    return {"CLAUDEOPS_HOOK_URL": f"http://{address}:{port}"}


def host_warnings(host: str, given: Mapping[str, str], allowed_hosts: Sequence[str]) -> list[str]:
    """Return warnings for an operator who lets others reach the web server; none for a loopback address."""
    if is_loopback(host):
        return []
    if boolean.parse(given.get("CLAUDEOPS_PLAIN_HTTP", "")):
        return [
            f"Served without encryption on {host}: whoever can read this network's traffic reads passwords and "
            "sessions. Unset CLAUDEOPS_PLAIN_HTTP and put a proxy with TLS in front."
        ]
    warnings = [
        f"On {host} cookies are marked secure and http is redirected to https: signing in works only through a proxy "
        "with TLS in front, with CLAUDEOPS_TRUST_PROXY=1 when it sets X-Forwarded-Proto."
    ]
    if set(allowed_hosts) <= {"localhost", "127.0.0.1", "[::1]"}:
        warnings.append(
            "Requests are answered under the names localhost and 127.0.0.1 only. Set ALLOWED_HOSTS (and "
            "CSRF_TRUSTED_ORIGINS) to the name it is reached by."
        )
    return warnings


def demo_environment(given: Mapping[str, str], data_dir: Path) -> dict[str, str]:
    chosen = {name: value for name, value in given.items() if name not in OPERATORS_OWN}
    chosen |= {"CLAUDEOPS_DEMO": "1", "CLAUDEOPS_DATA_DIR": str(data_dir / DEMO_FOLDER)}
    # The model is the same for both, and 90 MB.
    chosen.setdefault("CLAUDEOPS_MODELS_DIR", str(data_dir / "models"))
    # Recorded sessions cost nothing.
    chosen.setdefault("CLAUDEOPS_DAILY_BUDGET_USD", "0")
    # No model is paid for what recorded sessions say: what the observer says of them is recorded, too.
    chosen |= dict.fromkeys(MODELS, "") | {
        "CLAUDEOPS_MODEL_OBSERVER": "recorded:demo",
        "CLAUDEOPS_MODEL_REFLECTOR": "recorded:demo",
        "CLAUDEOPS_MODEL_TRIAGE": "recorded:demo",
        "CLAUDEOPS_MODEL_RECORDINGS": str(ANSWERS),
    }
    # The operator's own sessions are none of it.
    chosen["CLAUDEOPS_TRANSCRIPT_FOLDERS"] = ""
    # Its data are samples.
    chosen.setdefault("CLAUDEOPS_BACKUP_KEEP", "0")
    return chosen


def is_demo_environment(given: Mapping[str, str], data_dir: Path) -> bool:
    return (
        boolean.parse(given.get("CLAUDEOPS_DEMO", ""))
        and data_dir.name == DEMO_FOLDER
        and not any(name in given for name in OPERATORS_OWN)
    )


def lock_data_folder(data_dir: Path) -> IO[str]:
    """Lock the data folder until the returned file is closed. Raises Refusal when it is locked or cannot be written."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (data_dir / "up.lock").open("a+")
    except OSError as error:
        raise Refusal(
            "data_folder",
            f"The data folder {data_dir} cannot be written: {error.strerror}.",
            "Give it to the user who runs this, or set CLAUDEOPS_DATA_DIR to another folder.",
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        who = file.read().strip()
        file.close()
        raise Refusal(
            "already_up",
            f"Another `up` runs with the data folder {data_dir}" + (f" (process {who})." if who else "."),
            "Use that one, or stop it first.",
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


# Output.


def welcome(
    *,
    url: str,
    sign_in: FirstSignIn,
    data_dir: Path,
    database: str,
    demo: bool,
    missing: Sequence[Missing],
    warnings: Sequence[str],
) -> str:
    """Return the text that `up` prints. `database` is the engine's name; a demo has nothing `missing`."""
    lines = [f"claudeops is up{' (demo)' if demo else ''}.", ""]
    lines.append(f"  Open     {url}")
    lines += _sign_in_text(sign_in)
    contents = "sample data only; delete the folder to start afresh" if demo else "raw logs, secret key"
    if database == "sqlite3" and not demo:
        contents = f"database, {contents}"
    lines += [f"  Data     {data_dir}", f"           ({contents})", ""]
    lines += _demo_text() if demo else _missing_text(missing)
    for warning in warnings:
        lines += [_wrapped(f"Warning: {warning}", "  ", "    "), ""]
    lines.append("Ctrl-C stops everything.")
    return "\n".join(lines)


def _sign_in_text(sign_in: FirstSignIn) -> list[str]:
    if sign_in.password is None:
        return ["  Sign in  with your account and your password"]
    return [
        f"  Sign in  user {sign_in.user}, password {sign_in.password}",
        f"           (kept in {sign_in.file}; change it after signing in)",
    ]


def _demo_text() -> list[str]:
    return [
        "  What happens now: the agent homelab-watch looks after a small homelab. Its first session already runs; what",
        "  it learns is in the prompt of the second, which follows at once (see its receipt). Then one runs every",
        "  minute. After some five minutes jellyfin hangs: the session escalates, tier 2 finds the cause, tier 3 fixes",
        "  it. Each session that ended is observed; what it taught waits in the inbox or is in the next prompt, under",
        "  Knowledge. What was known before is curated: Memory file shows MEMORY.md with its commits, the inbox has a",
        "  proposal, Maintenance what a run changed and how to undo it, Why not? why something was forgotten.",
        "  Sessions and the words of models are recordings; queue, ingest, memory, git and escalation are real.",
        "",
    ]


def _missing_text(missing: Sequence[Missing]) -> list[str]:
    if not missing:
        return ["  Agents run when their schedule says so, or now: manage.py session run --agent SLUG", ""]
    lines = ["  Before agents can work:"]
    for item in missing:
        lines += [_wrapped(item.what, "  - ", "    "), _wrapped(item.fix, "    ", "    ")]
    return [*lines, ""]


def _wrapped(text: str, first: str, then: str) -> str:
    return textwrap.fill(
        text, 110, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )
