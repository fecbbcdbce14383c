"""`manage.py backup`: back up database, raw logs and keys while everything runs."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

from claudeops.features.backups.folder import printable
from claudeops.features.backups.make import Made, make
from claudeops.features.backups.manifest import KEYS, LOGS
from claudeops.lib.cli import Result, SoleCommand, arg
from claudeops.lib.humanize import size


def number_to_keep(raw: str) -> int:
    if raw.isdecimal() and 1 <= int(raw) <= 1_000_000:
        return int(raw)
    raise ArgumentTypeError(f"{raw!r} is not a number of backups; allowed is 1 or more")


def folder(raw: str) -> Path:
    try:
        path = Path(raw).expanduser()
        if raw.strip() and "\0" not in raw and (path.is_dir() or not path.exists()):
            return path
    except (OSError, RuntimeError) as error:  # a name that is too long; ~nobody
        raise ArgumentTypeError(f"{raw!r} is not a folder: {error}") from error
    raise ArgumentTypeError(f"{raw!r} is not a folder")


class Command(SoleCommand):
    help = "Back up the database, the raw logs and the keys, while everything runs."

    def run(
        self,
        *,
        to: Path | None = arg("where (default: CLAUDEOPS_BACKUP_DIR)", metavar="FOLDER", type=folder),
        keep: int | None = arg("then remove all backups there but the newest N", metavar="N", type=number_to_keep),
        no_keys: bool = arg("without the secret key and the first password"),
        full: bool = arg("copy every raw log, link none of the backup before"),
    ) -> Result:
        backup = make(to, keep=keep, keys=not no_keys, full=full)
        data = {
            "path": str(backup.path),
            "bytes": backup.manifest.size,
            "files": len(backup.manifest.files),
            "linked": backup.linked,
            "missing_logs": [printable(path) for path in backup.manifest.missing_logs],
            "unreadable": [printable(path) for path in backup.manifest.unreadable],
            "removed": backup.removed,
        }
        return Result(data, as_text(backup), {f"manage.py verify {backup.path}": "check it"})


def as_text(made: Made) -> str:
    logs, keys = made.manifest.of(LOGS), made.manifest.of(KEYS)
    lines = [
        f"Backup {made.path}",
        f"  database  {size(made.manifest.database.size)}",
        f"  raw logs  {len(logs)} files, {size(sum(log.size for log in logs))}; "
        f"{made.linked} unchanged since the backup before",
        f"  keys      {', '.join(key.path for key in keys) or 'none'}",
    ]
    if made.manifest.missing_logs:
        lines.append(f"Raw logs that sessions name and that are gone: {len(made.manifest.missing_logs)}.")
    if made.manifest.unreadable:
        named = ", ".join(printable(path) for path in made.manifest.unreadable[:5])
        lines.append(f"Not in it, because they cannot be read: {len(made.manifest.unreadable)} ({named}).")
    if made.removed:
        lines.append(f"Removed: {', '.join(made.removed)}.")
    return "\n".join(lines)
