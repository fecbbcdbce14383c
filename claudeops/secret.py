"""The secret key: created once, kept in the data folder, readable only by its owner."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def secret_key(data_dir: Path) -> str:
    """Return the key in `data_dir`/secret_key, created when missing.

    Two processes that start at once get the same key: the file is written under another name and linked into place,
    which fails for the second. Raises ImproperlyConfigured when the folder cannot be written or the file is empty.
    """
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = data_dir / f".secret_key.{os.getpid()}.{secrets.token_hex(4)}"
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(50) + "\n")
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"The secret key could not be kept in {path}: {error.strerror}. "
            "Set SECRET_KEY, or CLAUDEOPS_DATA_DIR to a folder that can be written."
        ) from error
    if len(key) < 32:
        raise ImproperlyConfigured(f"{path} holds no usable key. Remove the file; a new key is then created.")
    return key
