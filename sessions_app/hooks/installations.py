"""The hooks that are installed on this host, the tokens with which they call, and when each was last heard of."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from memories.access import BEGINNING, access_of, add_token, digest, revoke_token
from memories.models import ApiToken, Project, Scope
from sessions_app.errors import InvalidSettings
from sessions_app.hooks import installer, settings_file
from sessions_app.hooks.installer import Installed
from sessions_app.models import HookHeard, TranscriptFolder
from sessions_app.transcripts.files import transcripts_of

MADE = "hooks: "
"""The beginning of the names of tokens that the installer makes."""

MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class State:
    """One hook: in which file it is (None: in none that was looked at), who calls with it, when it was heard (UTC).

    `problem` is why it was or will be not answered; empty when nothing is known against it.
    """

    event: str
    name: str
    file: Path | None
    installation: str
    url: str = ""
    last_at: datetime | None = None
    calls: int = 0
    problem: str = ""


def files_of(environment: Mapping[str, str], folders: Iterable[Path]) -> list[Path]:
    """Return the settings files to look at: the person's, and those of the projects whose folder is on this host."""
    paths = [Path(path) for path in Project.objects.exclude(path="").order_by("slug").values_list("path", flat=True)]
    files = [settings_file.user_file(environment)]
    for folder in dict.fromkeys([*folders, *(path for path in paths if path.is_absolute())]):
        if folder.is_dir():
            files += [settings_file.project_file(folder, shared=shared) for shared in (True, False)]
    return list(dict.fromkeys(files))


def states(files: Iterable[Path], environment: Mapping[str, str], *, at: datetime) -> list[State]:
    """Return the state of each hook in `files`, then of those that were heard of and are in none of them.

    Two queries. A file that cannot be read is a state with a problem.
    """
    hooks: list[tuple[Path, Installed]] = []
    hook_states: list[State] = []
    for path in files:
        try:
            text = settings_file.read(path)
            hooks += [(path, one) for one in installer.installed(text)] if text is not None else []
        except InvalidSettings as error:
            hook_states.append(State("", "", path, "", problem=str(error)))
    secrets = {one.token: _secret(one.token, environment) for _path, one in hooks}
    tokens = {token.secret_hash: token for token in ApiToken.objects.filter(secret_hash__in=_digests(secrets.values()))}
    reports = {(row.event, row.installation): row for row in HookHeard.objects.order_by("event", "installation")}
    for path, one in hooks:
        token = tokens.get(digest(secrets[one.token]))
        row = reports.pop((one.event, token.name), None) if token else None
        hook_states.append(
            State(
                one.event,
                one.name,
                path,
                token.name if token else "",
                one.url,
                row.last_at if row else None,
                row.calls if row else 0,
                _against(one, secrets[one.token], token, at) or (row.problem if row else ""),
            )
        )
    return hook_states + [
        State(event, "", None, installation, "", row.last_at, row.calls, row.problem)
        for (event, installation), row in reports.items()
    ]


def make_token(where: str, *, project: Project | None, by: str) -> tuple[ApiToken, str]:
    """Create the token of an installation; names are not reused, so a further one gets a number."""
    base = f"{MADE}{where}"[:58]
    names = set(ApiToken.objects.filter(name__startswith=base).values_list("name", flat=True))
    name = next(one for one in (base, *(f"{base} {n}" for n in range(2, MOST_NAMES))) if one not in names)
    return add_token(name, [Scope.HOOK], by=by, project=project)


def where_of(path: Path, project: Project | None) -> str:
    """Name an installation: by its project, or by the host."""
    return project.slug if project else f"{socket.gethostname()} {path.parent.parent.name}"


def usable(token: str) -> bool:
    """Whether an installed hook's token is a secret that opens the door of this server."""
    access = access_of(token)
    return access is not None and access.may(Scope.HOOK)


def forget(removed: Iterable[Installed], *, by: str) -> list[str]:
    """Revoke the tokens that the installer made for removed hooks, and what was heard with them; return their names."""
    rows = ApiToken.objects.filter(secret_hash__in=_digests(one.token for one in removed), name__startswith=MADE)
    names = list(rows.filter(revoked_at=None).values_list("name", flat=True))
    for name in names:
        revoke_token(name, by=by)
    HookHeard.objects.filter(installation__in=names).delete()
    return names


def watch(environment: Mapping[str, str], folder: str, token: str) -> None:
    """Have the transcripts of sessions that worked in `folder` or below swept (empty: all), from now on."""
    access = access_of(_secret(token, environment))
    TranscriptFolder.objects.update_or_create(  # a row that is there keeps its beginning
        host=settings.CLAUDEOPS_HOST,
        path=str(transcripts_of(environment)),
        project_path=folder,
        defaults={"installation": access.actor.removeprefix("token ") if access else ""},
    )


def unwatch(environment: Mapping[str, str], folder: str) -> None:
    """Take back `watch`."""
    TranscriptFolder.objects.filter(
        host=settings.CLAUDEOPS_HOST, path=str(transcripts_of(environment)), project_path=folder
    ).delete()


def _digests(secrets: Iterable[str]) -> list[str]:
    return [digest(one) for one in secrets if one]


def _secret(token: str, environment: Mapping[str, str]) -> str:
    """Return the secret itself; empty when the variable or the file that should hold it is not there."""
    if token.startswith("$"):
        return environment.get(token[1:], "")
    return settings_file.token_in(Path(token)) if token.startswith("/") else token


def _against(one: Installed, secret: str, token: ApiToken | None, at: datetime) -> str:
    """Say why the door would not answer; empty when it would, or when this server cannot know."""
    if not secret:
        return f"{one.token} is not set here." if one.token.startswith("$") else f"{one.token} holds no token."
    if token is None:
        return "" if not secret.startswith(BEGINNING) else "This server does not know its token."
    if token.revoked_at:
        return f"Its token {token.name} is revoked."
    return f"Its token {token.name} has expired." if token.expired(at) else ""
