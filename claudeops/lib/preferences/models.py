"""What a person has chosen: one preference an account, and saved views of lists."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField

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


class Theme(models.TextChoices):
    """SYSTEM follows the operating system."""

    SYSTEM = "system", "As the system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


def check_zone(name: str) -> None:
    """Raise ValidationError unless `name` is an IANA name of a zone."""
    if zone(name) is None:
        raise ValidationError("There is no time zone of this name. An example is Europe/Berlin.", code="unknown")


def check_query(text: str) -> None:
    """Raise ValidationError unless `text` is the query string of a list."""
    try:
        clean_query(text)
    except ValueError as error:
        raise ValidationError(str(error), code="invalid") from None


class Preference(models.Model):
    """How the pages look for one account. `time_zone` is an IANA name; empty stands for the browser's own zone."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preference", primary_key=True
    )
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.SYSTEM)
    time_zone = models.CharField(
        max_length=ZONE_LENGTH,
        blank=True,
        default="",
        validators=[check_zone],
        help_text="A name such as Europe/Berlin. Empty = the browser's own.",
    )

    class Meta:
        db_table = "preferences"

    def __str__(self) -> str:
        return f"Preference of {self.user}"


class SavedView(models.Model):
    """A list with its filters under a name: `page` is the name of the list's URL, `query` its query string without "?".

    `query` is stored as `rules.clean_query` gives it, so it can stand behind the list's own address and leads nowhere
    else. `created_at` is UTC.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    page = models.CharField(max_length=PAGE_LENGTH, validators=[RegexValidator(PAGE)])
    name = MaskedCharField(max_length=NAME_LENGTH)
    query = MaskedCharField(max_length=QUERY_LENGTH, blank=True, default="", validators=[check_query])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "saved_views"
        ordering = ["page", "name"]
        verbose_name = "saved view"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "page", "name"],
                name="saved_view_once",
                violation_error_message="You have a view of this name already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"

    def clean(self) -> None:
        self.name = " ".join(self.name.split())
        if not self.name.isprintable():
            raise ValidationError({"name": "A name holds no control characters."})
        try:
            self.query = clean_query(self.query)
        except ValueError:
            pass  # `check_query` has said so beside the field


class ListChoice(models.Model):
    """The columns and the size of a page that an account has chosen for the list whose URL is named `page`.

    `columns` are names with commas between them; empty stands for the usual ones.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="list_choices")
    page = models.CharField(max_length=PAGE_LENGTH, validators=[RegexValidator(PAGE)])
    columns = models.CharField(max_length=COLUMNS_LENGTH, blank=True, default="", validators=[RegexValidator(COLUMNS)])
    size = models.PositiveSmallIntegerField()

    class Meta:
        db_table = "list_choices"
        constraints = [models.UniqueConstraint(fields=["user", "page"], name="list_choice_once")]

    def __str__(self) -> str:
        return f"{self.page}: {self.columns or 'the usual columns'}, {self.size} rows"

    @property
    def names(self) -> list[str]:
        return self.columns.split(",")
