"""Sign exported rows, so that an import knows which of them this installation wrote."""

from __future__ import annotations

import json
from typing import Any

from django.utils.crypto import constant_time_compare, salted_hmac

FIELD = "signature"
SALT = "memories.exchange.signature"


def signature_of(entry: dict[str, Any]) -> str:
    """Return the HMAC-SHA256 (hexadecimal) of a row without its signature, by a key derived from SECRET_KEY.

    The row is signed as JSON with sorted keys and without spaces, so that its layout in the file does not matter.
    """
    rest = {name: value for name, value in entry.items() if name != FIELD}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return salted_hmac(SALT, canonical, algorithm="sha256").hexdigest()


def is_ours(entry: dict[str, Any]) -> bool:
    """Whether this installation signed the row, and nobody changed it since."""
    given = entry.get(FIELD)
    return isinstance(given, str) and constant_time_compare(given, signature_of(entry))
