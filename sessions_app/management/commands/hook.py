"""`manage.py hook`: install the hooks into the settings of the Claude Code CLI, show their state, take them out."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from claudeops.lib.cli import (
    Columns,
    Refusal,
    Result,
    VerbCommand,
    arg,
    current_user,
    difference_of,
    listing,
    unchanged,
    verb,
)
from claudeops.lib.humanize import ago
from sessions_app.hooks import installations, installer, settings_file
from sessions_app.runner.agent_hooks import OBSERVE, SETS, groups
from sessions_app.transcripts.place import project_at
from sessions_app.transcripts.status import folders

DEFAULT_URL = "http://127.0.0.1:8000"
ADDRESS, VARIABLE = re.compile(r"https?://\S+"), re.compile(r"\$[A-Za-z_]\w*")
STATUS = {"manage.py hook status": "see when each hook was last heard of"}
NEW_TOKEN = "A-NEW-TOKEN"  # noqa: S105  (its place in the difference that is shown)


@dataclass(frozen=True)
class Choice:
    """Which hooks in which settings, and whether to ask."""

    user: bool = arg("your own settings, for every project (the default)", group="where")
    project: str | None = arg("the settings of the repository at PATH", metavar="PATH", group="where")
    agents: bool = arg("memories of subagents: what they are told, and learn")
    cooldowns: bool = arg("refuse restarts that a cooldown does not allow")
    decisions: bool = arg("before a file is changed: name the decisions that govern it, each once in a session")
    observe: bool = arg(
        "whole sessions: a briefing at their start, memories that match a prompt, and what they learn is kept"
    )
    prompts: bool = arg(
        "in place of --agents, for a CLI without SubagentStart: what a subagent is told stands in its prompt"
    )
    dry_run: bool = arg("show the difference and change nothing")
    yes: bool = arg("do not ask")

    @property
    def names(self) -> list[str]:
        return [name for name in SETS if getattr(self, name)]

    @property
    def folder(self) -> str:
        """The folder whose sessions are observed; empty for all."""
        return str(Path(self.project).expanduser().resolve()) if self.project else ""

    def file(self, *, shared: bool) -> Path:
        if self.project is None:
            return settings_file.user_file(os.environ)
        return settings_file.project_file(Path(self.project).expanduser(), shared=shared)


class Command(VerbCommand):
    help = "Hooks of the Claude Code CLI: install, look after and remove them."

    @verb
    def install(
        self,
        *,
        choice: Choice,
        url: str | None = arg(f"address of this server (default: CLAUDEOPS_HOOK_URL, or {DEFAULT_URL})"),
        token: str | None = arg(
            "an API token with the scope hook, or '$NAME' of the environment variable that holds it; with '$NAME' a "
            "project's hooks go into the settings that are shared (default: a new token)"
        ),
        fail_closed: bool = arg("with --cooldowns: refuse Bash commands while the server is away"),
    ) -> Result:
        """Install hooks; shows the difference and asks."""
        names = choice.names
        if not names or (fail_closed and not choice.cooldowns):
            raise Refusal(
                "usage",
                "Say which hooks: --agents, --cooldowns, --decisions, --observe; --fail-closed needs --cooldowns.",
            )
        if choice.agents and choice.prompts:
            raise Refusal("usage", "--prompts takes the place of --agents: with both a subagent is told twice.")
        if token and token.startswith("$") and not VARIABLE.fullmatch(token):
            raise Refusal("usage", f"{token} is no name of a variable.")
        path = choice.file(shared=bool(token and token.startswith("$")))
        before = settings_file.read(path)
        text = installer.EMPTY if before is None else before
        tokens = [one.token for one in installer.installed(text)]
        secret = token or next((one for one in tokens if one.startswith("$") or installations.usable(one)), None)
        address = url or settings.CLAUDEOPS_HOOK_URL or DEFAULT_URL
        if not ADDRESS.fullmatch(address):
            raise Refusal("usage", "--url is an address that begins with http:// or https://.")
        beside = settings_file.token_file(path, os.environ)

        def written(secret: str) -> str:
            entries = partial(groups, url=address, token=secret, token_file=str(beside), fail_closed=fail_closed)
            wanted = [one for name in names for one in entries(name)]
            return installer.install(installer.uninstall(text, names), wanted)

        after = written(secret or NEW_TOKEN)
        difference = difference_of(path, before, after)
        data = {"file": str(path), "hooks": names, "url": address, "difference": difference, "written": False}
        if before == after and secret is not None:
            _observe(choice, secret, beside)  # a file or a row may be missing
            lines = ["The hooks are installed already.", *_of_the_secret(path, secret, beside, bool(choice.project))]
            return Result(data | {"warnings": lines[1:]}, "\n".join(lines))
        if not self.agreed(difference, yes=choice.yes, dry_run=choice.dry_run):
            return Result(data, unchanged(difference, choice.dry_run))
        if secret is None:
            of = project_at(str(path.parent.parent)) if choice.project else None
            where = installations.where_of(path, of)
            token_row, secret = installations.make_token(where, project=of, by=current_user())
            try:
                settings_file.write(path, before, written(secret))
            except BaseException:
                token_row.delete()
                raise
        else:
            settings_file.write(path, before, after)
        _observe(choice, secret, beside)
        warnings = [*installer.warnings(after), *_of_the_secret(path, secret, beside, bool(choice.project))]
        lines = [f"Installed in {path}.", *warnings]
        return Result(data | {"written": True, "warnings": lines[1:]}, "\n".join(lines), STATUS)

    @verb
    def status(
        self, *, project: str | None = arg("also the settings of the repository at PATH", metavar="PATH")
    ) -> Result:
        """Say for each hook when it was last heard of."""
        now = timezone.now()
        files = installations.files_of(os.environ, [Path(project).absolute()] if project else [])
        states = installations.states(files, os.environ, at=now)
        cells: Columns = {
            "hook": lambda one: one.event or "-",
            "for": lambda one: one.name or "-",
            "file": lambda one: (
                one.file or ("our own sessions" if one.installation == "sessions" else "in no file of this host")
            ),
            "caller": lambda one: one.installation or "-",
            "last heard": lambda one: ago(one.last_at, now) if one.last_at else "never",
            "calls": "calls",
            "problem": lambda one: one.problem or "-",
        }
        data = [asdict(one) | {"file": str(one.file) if one.file else None} for one in states]
        sections = [listing(states, cells, "No hook is installed here, and none was heard of."), _folders(now)]
        return Result(data, "\n\n".join(filter(None, sections)))

    @verb
    def uninstall(self, *, choice: Choice) -> Result:
        """Take out exactly what was installed."""
        names = choice.names or list(SETS)
        files = [choice.file(shared=shared) for shared in ((True, False) if choice.project else (True,))]
        changes = []
        for path in files:
            before = settings_file.read(path)
            if before is not None and (after := installer.uninstall(before, names)) != before:
                changes.append((path, before, None if after == installer.EMPTY else after))
        difference = "".join(difference_of(*change) for change in changes)
        data = {"files": [str(path) for path, *_ in changes], "difference": difference, "written": False}
        if not changes:
            if OBSERVE in names and not choice.dry_run:
                installations.unwatch(os.environ, choice.folder)  # taken out by hand
            return Result(data, f"No hook of ours is in {' or '.join(map(str, files))}.")
        if not self.agreed(difference, yes=choice.yes, dry_run=choice.dry_run):
            return Result(data, unchanged(difference, choice.dry_run))
        lines = []
        for path, before, rest in changes:
            settings_file.write(path, before, rest)
            lines.append(f"Taken out of {path}.")
            remaining = {one.token for one in installer.installed(rest or installer.EMPTY)}
            gone = [one for one in installer.installed(before) if one.token not in remaining]
            lines += [f"Token {name} is revoked." for name in installations.forget(gone, by=current_user())]
            if OBSERVE in names:
                settings_file.token_file(path, os.environ).unlink(missing_ok=True)
        if OBSERVE in names:
            installations.unwatch(os.environ, choice.folder)
        return Result(data | {"written": True}, "\n".join(lines), STATUS)


def _observe(choice: Choice, secret: str, beside: Path) -> None:
    """Write what observing needs beside the settings: a file with the token, and the folder to look through."""
    if OBSERVE in choice.names:
        if not secret.startswith("$"):
            settings_file.write_token(beside, secret)
        installations.watch(os.environ, choice.folder, secret)


def _folders(now: datetime) -> str:
    """Return the table of the folders of transcripts that are swept; empty without one."""
    cells: Columns = {
        "folder of transcripts": str,
        "for": lambda one: one.installation or "-",
        "swept": lambda one: ago(one.swept_at, now) if one.swept_at else "never",
        "last taken in": lambda one: f"{one.last_name}, {ago(one.last_at, now)}" if one.last_at else "-",
        "problem": lambda one: one.problem or "-",
    }
    return listing(list(folders()), cells)


def _of_the_secret(path: Path, secret: str, beside: Path, of_project: bool) -> list[str]:
    """Keep the token that is in the file, and perhaps in the one beside it, out of git, and say how it is kept."""
    if secret.startswith("$"):
        return [f"The CLI takes the token from the variable {secret[1:]}: export it where the CLI is started."]
    lines = [words for file in (path, beside) if file.exists() and (words := settings_file.keep_from_git(file))]
    if not lines and of_project:
        lines = ["The file holds a token: keep it out of version control."]
    if settings_file.open_to_others(path):
        lines.append(f"Others on this machine can read the file, and the token in it: chmod 600 {path}")
    return lines
