"""What a person has chosen: one preference an account, and saved views of lists."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from claudeops.lib.masked_fields import MaskedCharField
from claudeops.lib.preferences import rules


class Theme(models.TextChoices):
    """SYSTEM follows the operating system."""

    SYSTEM = "system", "As the system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


def check_zone(name: str) -> None:
    """Raise ValidationError unless `name` is an IANA name of a zone."""
    if rules.zone(name) is None:
        raise ValidationError("There is no time zone of this name. An example is Europe/Berlin.", code="unknown")


def check_query(text: str) -> None:
    """Raise ValidationError unless `text` is the query string of a list."""
    try:
        rules.clean_query(text)
    except ValueError as error:
        raise ValidationError(str(error), code="invalid") from None


class Preference(models.Model):
    """How the pages look for one account. `time_zone` is an IANA name; empty stands for the browser's own zone."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preference", primary_key=True
    )
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.SYSTEM)
    time_zone = models.CharField(
        max_length=rules.ZONE_LENGTH,
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
    page = models.CharField(max_length=rules.PAGE_LENGTH, validators=[RegexValidator(rules.PAGE)])
    name = MaskedCharField(max_length=rules.NAME_LENGTH)
    query = MaskedCharField(max_length=rules.QUERY_LENGTH, blank=True, default="", validators=[check_query])
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
            self.query = rules.clean_query(self.query)
        except ValueError:
            pass  # `check_query` has said so beside the field


class ListChoice(models.Model):
    """The columns and the size of a page that an account has chosen for the list whose URL is named `page`.

    `columns` are names with commas between them; empty stands for the usual ones.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="list_choices")
    page = models.CharField(max_length=rules.PAGE_LENGTH, validators=[RegexValidator(rules.PAGE)])
    columns = models.CharField(
        max_length=rules.COLUMNS_LENGTH, blank=True, default="", validators=[RegexValidator(rules.COLUMNS)]
    )
    size = models.PositiveSmallIntegerField()

    class Meta:
        db_table = "list_choices"
        constraints = [models.UniqueConstraint(fields=["user", "page"], name="list_choice_once")]

    def __str__(self) -> str:
        return f"{self.page}: {self.columns or 'the usual columns'}, {self.size} rows"

    @property
    def names(self) -> list[str]:
        return self.columns.split(",")
