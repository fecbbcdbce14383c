"""What a person has chosen for a list: its columns and the size of its pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from claudeops.lib.preferences.models import ListChoice


def list_choice_of(user: Any, page: str) -> ListChoice | None:
    """Return an account's choice for the list whose URL has this name; None when it has none. One query."""
    return ListChoice.objects.filter(user=user.pk, page=page).first()


def choose_list(user: Any, page: str, columns: Iterable[str], size: int) -> ListChoice:
    """Store the names of the columns to show, none for the usual ones, and the rows of a page.

    Raises ValidationError for a name that is none.
    """
    choice = ListChoice(user=user, page=page, columns=",".join(columns), size=size)
    choice.full_clean(validate_unique=False, validate_constraints=False)
    stored, _ = ListChoice.objects.update_or_create(
        user=user, page=page, defaults={"columns": choice.columns, "size": choice.size}
    )
    return stored
