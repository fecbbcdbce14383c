"""Refuse texts that a person had purged. What is kept of them are keyed digests, so that no door stores them again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

from memories.capture.text import fold
from memories.models import ForgottenText

MARK = "[purged]"
"""What stands where a text was."""
SALT = "memories.lifecycle.forgotten"
WORD = re.compile(r"\w+")
BATCH = 500
REASON = "A person had this text purged (purge {}), so it is not stored again."
FIX = 'If it should be kept, allow it: manage.py memory purge --allow "TEXT", or on the page of that purge.'


def digest_of(text: str) -> str:
    """Return the HMAC-SHA256 (hexadecimal) of a text by a key derived from SECRET_KEY.

    Case, white space, invisible characters and punctuation do not matter, unless the text has nothing else.
    """
    folded = fold(text).casefold()
    words = " ".join(WORD.findall(folded)) or folded
    return salted_hmac(SALT, words, algorithm="sha256").hexdigest()


def forget(texts: Iterable[str], purge_id: int, *, at: datetime) -> None:
    """Refuse these texts from now on, also those that were allowed again after an earlier purge. Idempotent."""
    digests = sorted({digest_of(text) for text in texts})
    ForgottenText.objects.bulk_create(
        (ForgottenText(digest=one, purge_id=purge_id, created_at=at) for one in digests),
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["digest"],
        update_fields=["purge", "created_at", "allowed_at", "allowed_by"],
    )


def refusal(text: str) -> str:
    """Say why a text is not stored, and count that it came again; "" for a text that is."""
    return refusals([text]).get(text, "")


def refusals(texts: Iterable[str], *, is_counted: bool = True) -> dict[str, str]:
    """Return why those of `texts` that a person had purged are not stored, and count that they came again."""
    digests = {text: digest_of(text) for text in texts}
    wanted = sorted(set(digests.values()))
    purges: dict[str, int] = {}
    for start in range(0, len(wanted), BATCH):
        rows = ForgottenText.objects.filter(digest__in=wanted[start : start + BATCH], allowed_at=None)
        purges |= rows.values_list("digest", "purge")
    if purges and is_counted:
        again = ForgottenText.objects.filter(digest__in=list(purges))
        again.update(refused=models.F("refused") + 1, refused_at=timezone.now())
    return {text: REASON.format(purges[digest]) for text, digest in digests.items() if digest in purges}


def allow(*, by: str, text: str = "", purge_id: int | None = None, at: datetime | None = None) -> int:
    """Let a text be stored again, or all of a purge; returns how many were refused until now."""
    rows = ForgottenText.objects.filter(allowed_at=None)
    rows = rows.filter(digest=digest_of(text)) if text else rows.filter(purge=purge_id)
    return rows.update(allowed_at=at or timezone.now(), allowed_by=by[:150])
