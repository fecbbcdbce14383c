"""Read and store what a person has chosen."""

from __future__ import annotations

from typing import Any

from claudeops.lib.preferences.models import Preference


def preference_of(user: Any) -> Preference:
    """Return an account's preference, with defaults when it has none or nobody is signed in. Saves nothing.

    Asks the database only when `user` was loaded without `select_related("preference")`.
    """
    if not user.is_authenticated:
        return Preference()
    try:
        found: Preference = user.preference
    except Preference.DoesNotExist:
        return Preference(user=user)
    return found


def choose(user: Any, **chosen: str) -> Preference:
    """Store `theme`, `time_zone` or both for an account. Raises ValidationError; what is not named stays as it is."""
    preference = preference_of(user)
    for name, value in chosen.items():
        setattr(preference, name, value)
    preference.full_clean(exclude=["user"], validate_unique=False)
    Preference.objects.update_or_create(user=user, defaults=chosen)
    return preference
