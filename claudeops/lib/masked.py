"""Mask credentials where text is stored, logged or shown: model fields, a filter of logging, a note to a person.

Masked fields mask what `save()`, `update()` and the bulk methods write, not what a query looks for. Migrations see
Django's own fields, because the columns are the same. The first save imports the masks: their patterns take long to
compile, and most commands save nothing.

In logs a full disk or a locked database is no bug: such an exception is one sentence, not a traceback each time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import models

from claudeops.lib.secrets import mask_counted

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    _Base = models.Field[Any, Any]
else:
    _Base = object


class Masked(_Base):
    """Mixin: mask the value on its way into the database."""

    def masked(self, value: Any) -> Any:
        from claudeops.lib.secrets import mask

        return mask(value) if isinstance(value, str) else value

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        return super().get_db_prep_save(self.masked(value), connection)

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, path, args, kwargs = super().deconstruct()
        return name, path.replace(f"{__name__}.Masked", "django.db.models."), args, kwargs


class MaskedTextField(Masked, models.TextField):
    pass


class MaskedCharField(Masked, models.CharField):
    """The masked text may be longer than the column, so it is cut."""

    def masked(self, value: Any) -> Any:
        new_value = super().masked(value)
        return new_value[: self.max_length] if isinstance(new_value, str) else new_value


class MaskedJSONField(Masked, models.JSONField):
    def masked(self, value: Any) -> Any:
        from claudeops.lib.secrets import mask_value

        return mask_value(value) if isinstance(value, str | list | tuple | dict) else value


_FORMATTER = logging.Formatter()


class MaskSecrets(logging.Filter):
    """Mask the record's text before it is written. A record whose arguments do not fit its message is left as it is."""

    def filter(self, record: logging.LogRecord) -> bool:
        from claudeops.lib import outage  # here: the settings are not yet read when logging is configured
        from claudeops.lib.secrets import mask  # here: its patterns take long to compile

        try:
            record.msg, record.args = mask(record.getMessage()), None
        except (TypeError, ValueError):  # the handler reports it
            return True
        if record.exc_info and not record.exc_text:
            cause = outage.named_in(record.exc_info[1])
            record.exc_text = cause.message if cause else _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = mask(record.exc_text)
        if record.stack_info:
            record.stack_info = mask(record.stack_info)
        return True


def masked_note(*texts: str) -> str:
    """Return a sentence with the kinds of credentials in `texts`, with a space before it; "" when there is none."""
    kinds = sorted({kind for text in texts for kind in mask_counted(text)[1]})
    return f" What looks like a credential was masked: {', '.join(kinds)}." if kinds else ""
