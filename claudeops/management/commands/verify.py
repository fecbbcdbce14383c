"""`manage.py verify`: check a backup. Exit code 1 when it is damaged."""

from __future__ import annotations

from claudeops.backups.folder import BackupError, backups_folder, complete, resolve
from claudeops.backups.manifest import verify
from claudeops.lib.cli import Result, SoleCommand, arg, columns
from claudeops.lib.humanize import size


class Command(SoleCommand):
    help = "Check a backup: every size and SHA-256, and the database's own integrity. Exit code 1 when it is damaged."

    def run(self, backup: str | None = arg("the backup (default: the newest)", metavar="FOLDER|NAME")) -> Result:
        if backup is None:
            names = [path.name for path in complete(backups_folder())]
            if not names:
                raise BackupError("backup_not_found", f"There is no backup in {backups_folder()}.", "manage.py backup")
            backup = names[-1]
        found = verify(resolve(backup))
        manifest = found.manifest
        data = {"path": str(found.path)} | columns(manifest, "at", "version", "vendor")
        data |= {"files": len(manifest.files), "bytes": manifest.size, **columns(found, "problems", "notes")}
        about = f"{found.path}: {len(manifest.files)} files, {size(manifest.size)}, {manifest.vendor}"
        state = "DAMAGED" if found.problems else "whole"
        text = "\n".join([f"{about}, claudeops {manifest.version}: {state}.", *found.problems, *found.notes])
        error = ("damaged_backup", found.problems[0], "Use another backup.") if found.problems else None
        return Result(data, text, exit_code=1 if found.problems else 0, error=error)
