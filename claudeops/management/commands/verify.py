"""`manage.py verify`: check a backup. Exit code 1 when it is damaged."""

from __future__ import annotations

from claudeops.features.backups.folder import BackupError, backups_folder, complete, resolve
from claudeops.features.backups.manifest import verify
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
        report = verify(resolve(backup))
        manifest = report.manifest
        data = {"path": str(report.path)} | columns(manifest, "at", "version", "vendor")
        data |= {"files": len(manifest.files), "bytes": manifest.size, **columns(report, "problems", "notes")}
        about = f"{report.path}: {len(manifest.files)} files, {size(manifest.size)}, {manifest.vendor}"
        state = "DAMAGED" if report.problems else "whole"
        text = "\n".join([f"{about}, claudeops {manifest.version}: {state}.", *report.problems, *report.notes])
        error = ("damaged_backup", report.problems[0], "Use another backup.") if report.problems else None
        return Result(data, text, exit_code=1 if report.problems else 0, error=error)
