"""Model fields that mask credentials whenever a value is saved: the last step before the database, whoever writes.

They mask what `save()`, `update()` and the bulk methods write, not what a query looks for. Migrations see Django's own
fields, because the columns are the same. The first save imports the masks: their patterns take long to compile,
and most commands save nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

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
        found = super().masked(value)
        return found[: self.max_length] if isinstance(found, str) else found


class MaskedJSONField(Masked, models.JSONField):
    def masked(self, value: Any) -> Any:
        from claudeops.lib.secrets import mask_value

        return mask_value(value) if isinstance(value, str | list | tuple | dict) else value
