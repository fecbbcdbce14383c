"""Create the first operator account; its password is kept in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth import get_user_model
from django.db import transaction

USER = "operator"
FILE = "first-sign-in.txt"

NOTE = """The first account of claudeops, created by `manage.py up`.

user:     {user}
password: {password}

Change the password after signing in (/admin/password_change/), then remove this file. `up` removes it
once the account has another password.
"""


@dataclass(frozen=True, slots=True)
class FirstSignIn:
    """How to sign in. `password` is None once the operator has set another."""

    user: str
    password: str | None
    file: Path


def first_account(data_dir: Path) -> FirstSignIn:
    """Create the account `operator` when there is no account; return its password while it is the first one.

    Deletes the file with a changed password. Raises OSError, and creates no account, when it cannot write the file.
    """
    file = data_dir / FILE
    users = get_user_model()._default_manager
    with transaction.atomic():
        if not users.exists():
            fresh = secrets.token_urlsafe(12)
            _write(file, NOTE.format(user=USER, password=fresh))
            get_user_model().objects.create_superuser(USER, password=fresh)
            return FirstSignIn(USER, fresh, file)
    password = _noted(file)
    account = users.filter(username=USER, is_active=True).first()
    if password is not None and (account is None or not account.check_password(password)):
        file.unlink(missing_ok=True)
        password = None
    return FirstSignIn(USER, password, file)


def _write(file: Path, text: str) -> None:
    """Write the file atomically and never readable by others."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(text)
    draft.replace(file)


def _noted(file: Path) -> str | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((line.removeprefix("password:").strip() for line in lines if line.startswith("password:")), None)
