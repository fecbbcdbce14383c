"""Read and store what a person has chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError

from claudeops.lib.preferences.models import ListChoice, Preference, SavedView


def preference_of(user: Any) -> Preference:
    """Return an account's preference, with defaults when it has none or nobody is signed in. Saves nothing.

    Asks the database only when `user` was loaded without `select_related("preference")`.
    """
    if not user.is_authenticated:
        return Preference()
    try:
        preference: Preference = user.preference
    except Preference.DoesNotExist:
        return Preference(user=user)
    return preference


def choose(user: Any, **chosen: str) -> Preference:
    """Store `theme`, `time_zone` or both for an account. Raises ValidationError; what is not named stays as it is."""
    preference = preference_of(user)
    for name, value in chosen.items():
        setattr(preference, name, value)
    preference.full_clean(exclude=["user"], validate_unique=False)
    Preference.objects.update_or_create(user=user, defaults=chosen)
    return preference


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


MOST = 40
"""Views of one page that one account may save: they stand side by side above the list."""


def views_of(user: Any, page: str) -> list[SavedView]:
    """Return an account's views of the page whose URL has this name, by name; one query."""
    return list(SavedView.objects.filter(user=user.pk, page=page).order_by("name", "pk")[:MOST])


def all_views_of(user: Any) -> list[SavedView]:
    """Return an account's views of all pages, by name; one query."""
    return list(SavedView.objects.filter(user=user.pk).order_by("name", "pk"))


def save_view(user: Any, page: str, name: str, query: str) -> SavedView:
    """Save the filters `query` ("status=failed", "?" before it or not) under a name; the same name is overwritten.

    Raises ValidationError with a sentence for each field: an empty or too long name, a query that is none, too many.
    """
    view = SavedView(user=user, page=page, name=name, query=query)
    view.full_clean(validate_unique=False, validate_constraints=False)
    same = SavedView.objects.filter(user=user, page=page)
    if not same.filter(name=view.name).exists() and same.count() >= MOST:
        raise ValidationError({"name": f"There are {MOST} views already. Remove one first."}, code="full")
    stored, _ = SavedView.objects.update_or_create(user=user, page=page, name=view.name, defaults={"query": view.query})
    return stored


def rename_view(user: Any, pk: int, name: str) -> SavedView | None:
    """Rename a view that belongs to the account; None when there is none of this number.

    Raises ValidationError for a name that is empty, too long, or that of another view of the page.
    """
    view = SavedView.objects.filter(user=user.pk, pk=pk).first()
    if view is None:
        return None
    view.name = name
    view.full_clean()
    SavedView.objects.filter(pk=view.pk).update(name=view.name)
    return view


def remove_view(user: Any, pk: int) -> SavedView | None:
    """Remove a view that belongs to the account, and return it as it was; None when there is none of this number."""
    view = SavedView.objects.filter(user=user, pk=pk).first()
    if view is not None:
        SavedView.objects.filter(pk=view.pk).delete()
    return view
