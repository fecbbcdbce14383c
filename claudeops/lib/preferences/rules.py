"""What a preference may hold: names of time zones, names of pages, query strings. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo, available_timezones

ZONE_LENGTH = 64
PAGE_LENGTH = 64
NAME_LENGTH = 60
QUERY_LENGTH = 2000
QUERY_FIELDS = 60
"""More fields than any list has, so that a stored query is parsed within bounds."""
PAGE = re.compile(r"\A[a-z][a-z0-9_-]*\Z")
COLUMNS_LENGTH = 500
COLUMNS = re.compile(r"\A[a-z][a-z_]*(?:,[a-z][a-z_]*)*\Z")
FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")
NOT_ZONES = ("posix/", "right/", "SystemV/", "localtime", "posixrules", "Factory")
"""Files of the zone database that are no place: copies, leap seconds, and this machine's own zone."""


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """Return every IANA name that this installation knows, sorted: "Africa/Abidjan", …, "UTC"."""
    return tuple(sorted(name for name in available_timezones() if not name.startswith(NOT_ZONES)))


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    return frozenset(zone_names())


def zone(name: str) -> ZoneInfo | None:
    """Return the zone of an IANA name; None for any other text. Opens no file that the text may name."""
    return ZoneInfo(name) if len(name) <= ZONE_LENGTH and name in _known() else None


def clean_query(text: str) -> str:
    """Normalise the query string of a list, "?status=failed&agent=" as "status=failed": fields without a value go.

    Raises ValueError for anything else: an address, a fragment, a field with a strange name, too many fields.
    """
    query = text.strip().removeprefix("?")
    if len(query) > QUERY_LENGTH:
        raise ValueError(f"The filters are longer than {QUERY_LENGTH} characters.")
    try:
        fields = parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS)
    except ValueError:
        raise ValueError(f"There are more than {QUERY_FIELDS} filters.") from None
    if "#" in query or any(not FIELD.match(name) for name, _ in fields):
        raise ValueError("This is not the query string of a list.")
    if any(not char.isprintable() for _, value in fields for char in value):
        raise ValueError("A filter holds a control character.")
    cleaned = urlencode([(name, value) for name, value in fields if value])
    if len(cleaned) > QUERY_LENGTH:
        raise ValueError(f"The filters are longer than {QUERY_LENGTH} characters.")
    return cleaned
