"""When the last scan ran and what it found: a file in the data folder, because raw logs belong to one host."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

NAME = "secrets-scan.json"


@dataclass(frozen=True, slots=True)
class Last:
    """`found` and `left` are numbers of credentials; `at` is UTC."""

    at: datetime
    masking: bool
    found: int
    left: int


def write(scanned: Last) -> None:
    path = Path(settings.CLAUDEOPS_DATA_DIR) / NAME
    path.write_text(json.dumps({**asdict(scanned), "at": scanned.at.isoformat()}) + "\n", encoding="utf-8")


def read() -> Last | None:
    """Return the last scan; None when there was none, or its file cannot be read."""
    try:
        found = json.loads((Path(settings.CLAUDEOPS_DATA_DIR) / NAME).read_text(encoding="utf-8"))
        return Last(
            datetime.fromisoformat(found["at"]), bool(found["masking"]), int(found["found"]), int(found["left"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
