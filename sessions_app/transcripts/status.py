"""How the observation of transcripts stands: what was seen last, from where, and what is wrong. Times are UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db.models import Count, Subquery, Value

from memories.models import ArrivedBy, Transcript
from sessions_app.models import TranscriptFolder

LATELY = timedelta(days=1)
MOST = 100
"""Most folders that are read."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is swept. `last_name` is the file that was taken in last, at `last_at`; None: none so far."""

    path: str
    host: str
    project_path: str
    installation: str
    swept_at: datetime | None
    last_at: datetime | None
    last_name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path} on {self.host}" + (f" (sessions in {self.project_path})" if self.project_path else "")


@dataclass(frozen=True, slots=True)
class Seen:
    """`last_at` is when a transcript was seen last, `last_from` what named it; `problems` counts those of a day."""

    last_at: datetime | None = None
    last_from: str = ""
    problems: int = 0


def folders() -> list[Folder]:
    """Return the folders of all hosts. One query."""
    return [
        Folder(
            path=row.path,
            host=row.host,
            project_path=row.project_path,
            installation=row.installation,
            swept_at=row.swept_at,
            last_at=row.last_at,
            last_name=Path(row.last_path).name,
            problem=row.problem,
        )
        for row in TranscriptFolder.objects.order_by("host", "path", "project_path")[:MOST]
    ]


def seen(at: datetime) -> Seen:
    """Return what was seen last, and how many of the transcripts of the last day have a problem. One query."""
    troubled = Transcript.objects.filter(seen_at__gte=at - LATELY).exclude(problem="").order_by().annotate(one=Value(1))
    problems = Subquery(troubled.values("one").annotate(number=Count("pk")).values("number"))
    rows = Transcript.objects.order_by("-seen_at", "-pk").annotate(problems=problems)
    last = rows.values_list("seen_at", "arrived_by", "installation", "session", "problems").first()
    if last is None:
        return Seen()
    seen_at, arrived_by, installation, session, number = last
    of = f" of {installation}" if installation else ""
    origin = f"session {session}" if session else f"{ArrivedBy(arrived_by).label}{of}"
    return Seen(seen_at, origin, number or 0)
