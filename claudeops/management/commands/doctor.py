"""`manage.py doctor`: check the installation. Exit code 1 when something is wrong."""

from __future__ import annotations

from claudeops.features.doctor import ERROR, OK, WARNING, Diagnosis, examine
from claudeops.lib.cli import Result, SoleCommand

NAMES = {"claudeops": "claudeops", "sqlite": "SQLite", "postgresql": "PostgreSQL", "claude": "Claude Code CLI"}
MARKS = {OK: "OK", WARNING: "warning", ERROR: "ERROR"}


class Command(SoleCommand):
    help = "Check the installation: settings, database, CLI, workers, queues, schedules. Exit code 1 when one is wrong."
    # It reports the findings of the system checks, and must run when they would stop every other command.
    requires_system_checks: list[str] = []

    def run(self) -> Result:
        diagnosis = examine()
        data = {
            "healthy": diagnosis.healthy,
            "versions": diagnosis.versions,
            "findings": diagnosis.findings,
        }
        silent = any(one.level != OK and one.subject.startswith("worker") for one in diagnosis.findings)
        actions = {"manage.py up": "start everything"} if silent else {}
        return Result(data, as_text(diagnosis), actions, exit_code=0 if diagnosis.healthy else 1)


def as_text(diagnosis: Diagnosis) -> str:
    lines = [f"{NAMES.get(name, name.capitalize())} {version}" for name, version in diagnosis.versions.items()]
    lines.append("")
    width = max(len(finding.subject) for finding in diagnosis.findings)
    for finding in diagnosis.findings:
        lines.append(f"{MARKS[finding.level]:<8} {finding.subject:<{width}}  {finding.text}")
        if finding.hint:
            lines.append(" " * (width + 11) + finding.hint)
    errors = sum(finding.level == ERROR for finding in diagnosis.findings)
    warnings = sum(finding.level == WARNING for finding in diagnosis.findings)
    lines += ["", f"Errors: {errors}. Warnings: {warnings}." if errors or warnings else "No problems found."]
    return "\n".join(lines)
