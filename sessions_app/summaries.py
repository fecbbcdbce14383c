"""Summaries as Markdown files in the vault: one a day and one a week, written again while something changes in them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from claudeops.lib.humanize import dollars, quantity
from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import disk
from memories.library import vault
from sessions_app.queries.summary import DAY, WEEK, Line, Summary, read

FOLDER = "summaries"
MARKS = re.compile(r"([\\`*_\[\]<>])")


def as_markdown(summary: Summary, address: str = "") -> str:
    """Return a summary as Markdown. Texts from outside are one line each and open nothing. `address`: the server's."""
    of = f" of {summary.project}" if summary.project else ""
    lines = [f"# {summary.name}{of}", "", f"{quantity(summary.sessions, 'session')}, {cost_of(summary)}.", ""]
    for part in summary.parts:
        lines += [f"## {part.title}", ""]
        lines += [_line(one, address) for one in part.lines] or [part.nothing]
        if part.count > len(part.lines):
            lines.append(f"- and {part.count - len(part.lines):,} more")
        lines.append("")
    return mask("\n".join(lines))


def cost_of(summary: Summary) -> str:
    models = f" and {dollars(summary.models_usd)} for models that claudeops asked" if summary.models_usd else ""
    return f"{dollars(summary.cost_usd)} for sessions{models}"


def _line(one: Line, address: str) -> str:
    beside = f" ({_plain(one.beside)})" if one.beside else ""
    return f"- {_plain(one.text)}{beside}" + (f" [→]({address}{one.url})" if address and one.url else "")


def _plain(text: str) -> str:
    """Return a text as one line in which no sign of Markdown means anything."""
    return MARKS.sub(r"\\\1", " ".join(text.split()))


def keep(summary: Summary, address: str = "", *, at: datetime) -> Path:
    """Write the summary into the vault and commit it; one that says the same stays. Raises Unusable and GitError."""
    of = f"-{summary.project}" if summary.project else ""
    name = f"{FOLDER}/{summary.name}{of}.md"
    path, data = vault.path_of(name), as_markdown(summary, address).encode()
    with vault.locked(FOLDER):
        if not path.exists() or disk.read(path).data != data:
            disk.write(path, data)
        vault.commit(name, f"Sum up {summary.name}{of}\n", at=at)
    return path


def keep_due(address: str = "", *, at: datetime) -> list[Path]:
    """Write the summaries of the day and the week that ended last, where something happened. Again is the same."""
    yesterday = (at - timedelta(days=1)).date()
    week = at.date() - timedelta(days=7)
    return [keep(one, address, at=at) for one in (read(DAY, yesterday), read(WEEK, week)) if not one.is_empty]
