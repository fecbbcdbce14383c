"""`manage.py verify`: check a backup. Exit code 1 when it is damaged."""

from __future__ import annotations

from argparse import ArgumentParser

from claudeops.backups.folder import BackupError, backups_folder, complete, resolve
from claudeops.backups.manifest import verify
from claudeops.lib.cli import Result, SoleCommand
from claudeops.lib.humanize import size


class Command(SoleCommand):
    noun = "verify"
    help = "Check a backup: every size and SHA-256, and the database's own integrity. Exit code 1 when it is damaged."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("backup", nargs="?", metavar="FOLDER|NAME", help="the backup (default: the newest)")

    def run(self, backup: str | None) -> Result:
        if backup is None:
            names = [path.name for path in complete(backups_folder())]
            if not names:
                raise BackupError("backup_not_found", f"There is no backup in {backups_folder()}.", "manage.py backup")
            backup = names[-1]
        found = verify(resolve(backup))
        manifest = found.manifest
        data = {
            "path": str(found.path),
            "at": manifest.at,
            "version": manifest.version,
            "vendor": manifest.vendor,
            "files": len(manifest.files),
            "bytes": manifest.size,
            "problems": found.problems,
            "notes": found.notes,
        }
        about = f"{found.path}: {len(manifest.files)} files, {size(manifest.size)}, {manifest.vendor}"
        state = "DAMAGED" if found.problems else "whole"
        text = "\n".join([f"{about}, claudeops {manifest.version}: {state}.", *found.problems, *found.notes])
        error = ("damaged_backup", found.problems[0], "Use another backup.") if found.problems else None
        return Result(data, text, exit_code=1 if found.problems else 0, error=error)
