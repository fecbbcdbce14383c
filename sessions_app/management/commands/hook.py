"""`manage.py hook`: install the hooks into the settings of the Claude Code CLI, show their state, take them out."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from claudeops.lib.cli import (
    NextAction,
    Refusal,
    Result,
    Verb,
    VerbCommand,
    current_user,
    difference_of,
    table,
    unchanged,
)
from claudeops.lib.humanize import ago
from sessions_app.hooks import installations, installer, settings_file
from sessions_app.runner.agent_hooks import OBSERVE, SETS, groups
from sessions_app.transcripts.place import project_at
from sessions_app.transcripts.status import folders

DEFAULT_URL = "http://127.0.0.1:8000"
ADDRESS, VARIABLE = re.compile(r"https?://\S+"), re.compile(r"\$[A-Za-z_]\w*")
NEW_TOKEN = "A-NEW-TOKEN"  # noqa: S105  (its place in the difference that is shown)


def _where(parser: ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="your own settings, for every project (the default)")
    where.add_argument("--project", metavar="PATH", help="the settings of the repository at PATH")


def _sets(parser: ArgumentParser) -> None:
    parser.add_argument("--agents", action="store_true", help="memories of subagents: what they are told, and learn")
    parser.add_argument("--cooldowns", action="store_true", help="refuse restarts that a cooldown does not allow")
    parser.add_argument(
        "--observe",
        action="store_true",
        help="whole sessions: a briefing at their start, memories that match a prompt, and what they learn is kept",
    )
    parser.add_argument(
        "--prompts",
        action="store_true",
        help="in place of --agents, for a CLI without SubagentStart: what a subagent is told stands in its prompt",
    )


def _changing(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the difference and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _install_arguments(parser: ArgumentParser) -> None:
    _where(parser)
    _sets(parser)
    parser.add_argument("--url", help=f"address of this server (default: CLAUDEOPS_HOOK_URL, or {DEFAULT_URL})")
    parser.add_argument(
        "--token",
        help="an API token with the scope hook, or '$NAME' of the environment variable that holds it; with '$NAME' a "
        "project's hooks go into the settings that are shared (default: a new token)",
    )
    parser.add_argument(
        "--fail-closed", action="store_true", help="with --cooldowns: refuse Bash commands while the server is away"
    )
    _changing(parser)


def _status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="PATH", help="also the settings of the repository at PATH")


def _uninstall_arguments(parser: ArgumentParser) -> None:
    _where(parser)
    _sets(parser)
    _changing(parser)


class Command(VerbCommand):
    help = "Hooks of the Claude Code CLI: install, look after and remove them."
    noun = "hook"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "install": Verb("Install hooks; shows the difference and asks.", self.install, _install_arguments),
            "status": Verb("Say for each hook when it was last heard of.", self.status, _status_arguments),
            "uninstall": Verb("Take out exactly what was installed.", self.uninstall, _uninstall_arguments),
        }

    def install(
        self,
        user: bool,
        project: str | None,
        url: str | None,
        token: str | None,
        fail_closed: bool,
        dry_run: bool,
        yes: bool,
        **sets: bool,
    ) -> Result:
        names = _names(sets)
        if not names or (fail_closed and not sets["cooldowns"]):
            raise Refusal(
                "usage", "Say which hooks: --agents, --cooldowns, --observe; --fail-closed needs --cooldowns."
            )
        if sets["agents"] and sets["prompts"]:
            raise Refusal("usage", "--prompts takes the place of --agents: with both a subagent is told twice.")
        if token and token.startswith("$") and not VARIABLE.fullmatch(token):
            raise Refusal("usage", f"{token} is no name of a variable.")
        path = _file(project, shared=bool(token and token.startswith("$")))
        before = settings_file.read(path)
        text = installer.EMPTY if before is None else before
        kept = [one.token for one in installer.installed(text)]
        secret = token or next((one for one in kept if one.startswith("$") or installations.usable(one)), None)
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
            self._observe(names, secret, beside, project)  # a file or a row may be missing
            said = ["The hooks are installed already.", *_of_the_secret(path, secret, beside, bool(project))]
            return Result(data | {"warnings": said[1:]}, "\n".join(said))
        if not self.agreed(difference, dry_run, yes):
            return Result(data, unchanged(difference, dry_run))
        if secret is None:
            of = project_at(str(path.parent.parent)) if project else None
            where = installations.where_of(path, of)
            made, secret = installations.make_token(where, project=of, by=current_user())
            try:
                settings_file.write(path, before, written(secret))
            except BaseException:
                made.delete()
                raise
        else:
            settings_file.write(path, before, after)
        self._observe(names, secret, beside, project)
        warnings = [*installer.warnings(after), *_of_the_secret(path, secret, beside, bool(project))]
        said = [f"Installed in {path}.", *warnings]
        return Result(data | {"written": True, "warnings": said[1:]}, "\n".join(said), [STATUS])

    def _observe(self, names: list[str], secret: str, beside: Path, project: str | None) -> None:
        """Write what observing needs beside the settings: a file with the token, and the folder to look through."""
        if OBSERVE in names:
            if not secret.startswith("$"):
                settings_file.write_token(beside, secret)
            installations.watch(os.environ, _folder(project), secret)

    def status(self, project: str | None) -> Result:
        now = timezone.now()
        files = installations.files_of(os.environ, [Path(project).absolute()] if project else [])
        found = installations.states(files, os.environ, at=now)
        rows = [
            (
                one.event or "-",
                one.name or "-",
                one.file or ("our own sessions" if one.installation == "sessions" else "in no file of this host"),
                one.installation or "-",
                ago(one.last_at, now) if one.last_at else "never",
                one.calls,
                one.problem or "-",
            )
            for one in found
        ]
        text = table(["hook", "for", "file", "caller", "last heard", "calls", "problem"], rows)
        data = [asdict(one) | {"file": str(one.file) if one.file else None} for one in found]
        said = [text if rows else "No hook is installed here, and none was heard of.", _folders(now)]
        return Result(data, "\n\n".join(filter(None, said)))

    def uninstall(self, user: bool, project: str | None, dry_run: bool, yes: bool, **sets: bool) -> Result:
        names = _names(sets) or list(SETS)
        files = [_file(project, shared=shared) for shared in ((True, False) if project else (True,))]
        changes = []
        for path in files:
            before = settings_file.read(path)
            if before is not None and (after := installer.uninstall(before, names)) != before:
                changes.append((path, before, None if after == installer.EMPTY else after))
        difference = "".join(difference_of(*change) for change in changes)
        data = {"files": [str(path) for path, *_ in changes], "difference": difference, "written": False}
        if not changes:
            if OBSERVE in names and not dry_run:
                installations.unwatch(os.environ, _folder(project))  # taken out by hand
            return Result(data, f"No hook of ours is in {' or '.join(map(str, files))}.")
        if not self.agreed(difference, dry_run, yes):
            return Result(data, unchanged(difference, dry_run))
        said = []
        for path, before, rest in changes:
            settings_file.write(path, before, rest)
            said.append(f"Taken out of {path}.")
            left = {one.token for one in installer.installed(rest or installer.EMPTY)}
            gone = [one for one in installer.installed(before) if one.token not in left]
            said += [f"Token {name} is revoked." for name in installations.forget(gone, by=current_user())]
            if OBSERVE in names:
                settings_file.token_file(path, os.environ).unlink(missing_ok=True)
        if OBSERVE in names:
            installations.unwatch(os.environ, _folder(project))
        return Result(data | {"written": True}, "\n".join(said), [STATUS])


def _folders(now: datetime) -> str:
    """Return the table of the folders of transcripts that are swept; empty without one."""
    rows = [
        (
            one,
            one.installation or "-",
            ago(one.swept_at, now) if one.swept_at else "never",
            f"{one.last_name}, {ago(one.last_at, now)}" if one.last_at else "-",
            one.problem or "-",
        )
        for one in folders()
    ]
    return table(["folder of transcripts", "for", "swept", "last taken in", "problem"], rows) if rows else ""


STATUS = NextAction("manage.py hook status", "see when each hook was last heard of")


def _names(sets: Mapping[str, bool]) -> list[str]:
    return [name for name in SETS if sets[name]]


def _file(project: str | None, *, shared: bool) -> Path:
    if project is None:
        return settings_file.user_file(os.environ)
    return settings_file.project_file(Path(project).expanduser(), shared=shared)


def _folder(project: str | None) -> str:
    """Return the folder whose sessions are observed; empty for all."""
    return str(Path(project).expanduser().resolve()) if project else ""


def _of_the_secret(path: Path, secret: str, beside: Path, of_project: bool) -> list[str]:
    """Keep the token that is in the file, and perhaps in the one beside it, out of git, and say how it is kept."""
    if secret.startswith("$"):
        return [f"The CLI takes the token from the variable {secret[1:]}: export it where the CLI is started."]
    said = [words for file in (path, beside) if file.exists() and (words := settings_file.keep_from_git(file))]
    if not said and of_project:
        said = ["The file holds a token: keep it out of version control."]
    if settings_file.open_to_others(path):
        said.append(f"Others on this machine can read the file, and the token in it: chmod 600 {path}")
    return said
