"""What `manage.py up` needs to know before it starts anything: may this address be used, how, and by whom else.

Values in, values or a Refusal out; nothing is started here, and nothing is printed.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from claudeops.env import BASE_DIR, boolean
from claudeops.lib.cli import Refusal

DEMO_FOLDER = "demo"
# Names of a database or a folder that are the operator's: the demo has its own, whatever the environment says.
OPERATORS_OWN = ("DATABASE_URL", "DATABASE_URL_FILE", "CLAUDEOPS_DATA_DIR_FILE", "CLAUDEOPS_WORK_DIR")

WEB_PROCESSES, WEB_THREADS = 2, 4


def require_free(host: str, port: int) -> None:
    """Refuses when the web server could not listen on `host`:`port`, with what to do instead."""
    try:
        family, kind, protocol, _, address = _addresses(host, port)[0]
    except OSError as error:
        raise Refusal(
            "no_such_host", f"{host!r} is no address of this machine ({error.strerror}).", "Leave --host out."
        ) from None
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the web server does
        try:
            probe.bind(address)
        except PermissionError:
            raise Refusal(
                "port_not_allowed", f"Port {port} may only be used by root.", "Take one above 1023: --port 8000."
            ) from None
        except OSError as error:
            raise Refusal(
                "port_taken",
                f"Port {port} on {host} cannot be used: {error.strerror}.",
                f"Stop what listens there, or take another: --port {port + 1 if port < 65535 else 8000}.",
            ) from None


def is_loopback(host: str) -> bool:
    """Whether `host` is reached from this machine only."""
    try:
        found = _addresses(host, 0)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def _addresses(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    flags = socket.AI_PASSIVE
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)  # type: ignore[return-value]


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def reached_at(host: str) -> str:
    """An address under which this machine itself reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def web_argv(host: str, port: int) -> list[str]:
    """The web server's command line."""
    return [
        sys.executable,
        *("-m", "gunicorn", "claudeops.wsgi"),
        *("--chdir", str(BASE_DIR)),
        *("--bind", f"{in_url(host)}:{port}"),
        *("--workers", str(WEB_PROCESSES), "--threads", str(WEB_THREADS)),
        *("--graceful-timeout", "5"),
        *("--log-level", "warning"),
        "--no-control-socket",
    ]


def worker_argv() -> list[str]:
    """The workers' command line. With `up` everything ends together, so running sessions are stopped too."""
    return [sys.executable, str(BASE_DIR / "manage.py"), "runworker", "--on-stop", "stop"]


def web_environment(host: str, given: Mapping[str, str]) -> dict[str, str]:
    """What the web server gets beside `given`: plain http on a loopback address, unless something was said of it."""
    said = any(name in given for name in ("CLAUDEOPS_PLAIN_HTTP", "CLAUDEOPS_PLAIN_HTTP_FILE", "CLAUDEOPS_TRUST_PROXY"))
    return {"CLAUDEOPS_PLAIN_HTTP": "1"} if is_loopback(host) and not said else {}


def host_warnings(host: str, given: Mapping[str, str], allowed_hosts: Sequence[str]) -> list[str]:
    """What somebody must know who lets others reach the web server; empty for a loopback address."""
    if is_loopback(host):
        return []
    if boolean(given.get("CLAUDEOPS_PLAIN_HTTP", "")):
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
    """The environment of the demo: a folder and a database of its own beside the operator's, never theirs."""
    chosen = {name: value for name, value in given.items() if name not in OPERATORS_OWN}
    chosen |= {"CLAUDEOPS_DEMO": "1", "CLAUDEOPS_DATA_DIR": str(data_dir / DEMO_FOLDER)}
    # The model is the same for both, and 90 MB.
    chosen.setdefault("CLAUDEOPS_MODELS_DIR", str(data_dir / "models"))
    # What the recorded sessions cost was spent when they were recorded.
    chosen.setdefault("CLAUDEOPS_DAILY_BUDGET_USD", "0")
    return chosen


def is_demo_environment(given: Mapping[str, str], data_dir: Path) -> bool:
    """Whether this process runs in what `demo_environment` makes."""
    return (
        boolean(given.get("CLAUDEOPS_DEMO", ""))
        and data_dir.name == DEMO_FOLDER
        and not any(name in given for name in OPERATORS_OWN)
    )


def take_house(data_dir: Path) -> IO[str]:
    """Makes the data folder and takes it for this process, until the file returned is closed or the process ends.

    Refuses when the folder cannot be written, or another `up` has it.
    """
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
