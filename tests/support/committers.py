"""A project in which a person's commits are that person's word: its author is trusted, and no agent is at work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memories.models import Project
from sessions_app.models import PromptReceipt

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def trust_commits(project: Project, *emails: str) -> None:
    """Trust these authors, where a hook of ours was heard once, in a session that ended long ago."""
    project.trusted_authors = "\n".join(emails)
    project.save(update_fields=["trusted_authors"])
    times = {"at": LONG_AGO, "heard_at": LONG_AGO, "ended_at": LONG_AGO + timedelta(minutes=1)}
    PromptReceipt.objects.get_or_create(cli_session_id=f"of {project.slug}", defaults={"project": project, **times})
