"""What `manage.py up` says once the house stands: where, how to sign in, what happens, what is missing. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claudeops.first_account import FirstSignIn


@dataclass(frozen=True, slots=True)
class Missing:
    """Something the main job needs and has not; `fix` is what to do."""

    what: str
    fix: str


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
    """The whole text. `database` is the engine's name; `demo` and what is `missing` exclude each other."""
    lines = [f"claudeops is up{' (demo)' if demo else ''}.", ""]
    lines.append(f"  Open     {url}")
    lines += _sign_in(sign_in)
    kept = "sample data only; delete the folder to start afresh" if demo else "raw logs, secret key"
    if database == "sqlite3" and not demo:
        kept = f"database, {kept}"
    lines += [f"  Data     {data_dir}", f"           ({kept})", ""]
    lines += _demo() if demo else _missing(missing)
    for warning in warnings:
        lines += [_wrapped(f"Warning: {warning}", "  ", "    "), ""]
    lines.append("Ctrl-C stops everything.")
    return "\n".join(lines)


def _sign_in(sign_in: FirstSignIn) -> list[str]:
    if sign_in.password is None:
        return ["  Sign in  with your account and your password"]
    return [
        f"  Sign in  user {sign_in.user}, password {sign_in.password}",
        f"           (kept in {sign_in.file}; change it after signing in)",
    ]


def _demo() -> list[str]:
    return [
        "  What happens now: the agent homelab-watch looks after a small homelab. Its first session runs already; what",
        "  it learns is in the prompt of the second, which follows at once (see its receipt). Then it comes every",
        "  minute. After some five minutes jellyfin hangs: the session escalates, tier 2 finds the cause, tier 3 mends",
        "  it. The sessions are recordings; queue, ingest, memory and escalation are the real thing.",
        "",
    ]


def _missing(missing: Sequence[Missing]) -> list[str]:
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
