"""`manage.py doctor`: is everything as it should be here? In plain words; exit code 1 when something is wrong."""

from __future__ import annotations

from dataclasses import asdict

from claudeops.diagnosis import ERROR, OK, WARNING, Diagnosis, examine
from claudeops.lib.cli import NextAction, Result, SoleCommand

NAMES = {
    "claudeops": "claudeops",
    "python": "Python",
    "django": "Django",
    "sqlite": "SQLite",
    "postgresql": "PostgreSQL",
    "claude": "Claude Code CLI",
}
MARKS = {OK: "ok", WARNING: "warning", ERROR: "WRONG"}


class Command(SoleCommand):
    noun = "doctor"
    help = "Look at everything that can be wrong here, and say it in plain words. Exit code 1 when something is."
    # It says itself what the checks find, and also runs when they would end every other command.
    requires_system_checks: list[str] = []

    def run(self) -> Result:
        diagnosis = examine()
        data = {
            "healthy": diagnosis.healthy,
            "versions": diagnosis.versions,
            "findings": [asdict(finding) for finding in diagnosis.findings],
        }
        actions = [
            NextAction("manage.py up", "start everything")
            for finding in diagnosis.findings
            if finding.level != OK and finding.subject.startswith("worker")
        ]
        return Result(data, as_text(diagnosis), actions[:1], exit_code=0 if diagnosis.healthy else 1)


def as_text(diagnosis: Diagnosis) -> str:
    """The whole diagnosis for a terminal."""
    lines = [f"{NAMES[name]} {version}" for name, version in diagnosis.versions.items()]
    lines.append("")
    width = max(len(finding.subject) for finding in diagnosis.findings)
    for finding in diagnosis.findings:
        lines.append(f"{MARKS[finding.level]:<8} {finding.subject:<{width}}  {finding.text}")
        if finding.hint:
            lines.append(" " * (width + 11) + finding.hint)
    wrong = sum(finding.level == ERROR for finding in diagnosis.findings)
    warnings = sum(finding.level == WARNING for finding in diagnosis.findings)
    lines += ["", f"Wrong: {wrong}. Warnings: {warnings}." if wrong or warnings else "All is well."]
    return "\n".join(lines)
