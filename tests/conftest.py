"""Fixtures that every test may use, and which tests run in which run of the suite (tests/README.md)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.db import connection
from hypothesis import HealthCheck, settings

from tests.support.thorough import PROFILE

# Each worker computes on one processor: the threads of several would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: how long an example takes depends on how busy the machine is, not on whether the program is right. A
# property test that uses a fixture resets what its examples share. The same examples each time: a run of a change must
# not fail by what another change did. New ones are tried at night.
settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("thorough", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile(PROFILE)

BENCHMARKS = Path(__file__).parent / "benchmarks"
POSTGRESQL = os.environ.get("TEST_DATABASE") == "postgresql"

SQL = re.compile(
    r"tests/(claudeops/(backups|lib|purge|secret_scan|test_(database|migrations|odd|plans|polls|times))"
    r"|memories/(candidates|embedding|evaluation|injection|lifecycle|matching|models|queries|recall|telemetry|test_)"
    r"|sessions_app/(cooldowns|counts|models|queries|queue|test_))"
)
"""The beginnings of the paths whose tests run on PostgreSQL, too: SQL differs there, or locks do."""


def chosen_by(config: pytest.Config) -> str:
    """Return how the command line chooses tests: "" (not at all), "paths" or "markers" (-m, -k, --last-failed)."""
    if hasattr(config, "workerinput"):
        return str(config.workerinput["chosen_by"])
    if config.option.markexpr or config.option.keyword or config.getoption("lf", False):
        return "markers"
    return "paths" if config.args_source is pytest.Config.ArgsSource.ARGS else ""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what it cannot see: the command line of the run."""
    node.workerinput["chosen_by"] = chosen_by(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each processor. None where paths are given: a worker takes longer to start than a few tests."""
    return 0 if config.args_source is pytest.Config.ArgsSource.ARGS else (os.cpu_count() or 1)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Benchmarks run where they are named, and at night."""
    is_benchmarks = collection_path == BENCHMARKS and chosen_by(config) != "paths"
    return True if is_benchmarks and "thorough" not in config.option.markexpr else None


def uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(item.get_closest_marker("django_db") or fixtures & {"db", "transactional_db", "live_server"})


def has_marker(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def add_markers(item: pytest.Item) -> None:
    if item.path.is_relative_to(BENCHMARKS):
        item.add_marker("thorough")
    elif SQL.match(item.nodeid):
        item.add_marker("sql")
    elif POSTGRESQL and not has_marker(item, "processes", "real_cli"):
        item.add_marker("thorough")
    if not uses_database(item) and not has_marker(item, "processes", "real_cli", "browser"):
        item.add_marker("fast")


def belongs_here(item: pytest.Item) -> bool:
    """Whether a run without a choice of tests, on this database, has the test."""
    if has_marker(item, "smoke"):
        return not POSTGRESQL
    if has_marker(item, "slow", "browser"):
        return False
    if has_marker(item, "processes", "real_cli"):
        return POSTGRESQL
    if POSTGRESQL:
        return uses_database(item) and not has_marker(item, "one_database")
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        add_markers(item)
    chosen = chosen_by(config)
    keeps_thorough = chosen == "paths" or "thorough" in config.option.markexpr
    kept, left = [], []
    for item in items:
        belongs = (keeps_thorough or not has_marker(item, "thorough")) and (chosen or belongs_here(item))
        (kept if belongs else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


@pytest.fixture(autouse=True)
def no_vault_of_another_test() -> Iterator[None]:
    """What one test wrote to the journal is not indexed in the next one."""
    yield
    shutil.rmtree(Path(django_settings.CLAUDEOPS_DATA_DIR) / "vault", ignore_errors=True)


@pytest.fixture(autouse=True)
def no_process_in_a_fast_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `-m fast` promises is held here; pytest-django holds that it touches no database."""
    if request.node.get_closest_marker("fast"):

        def refuse(*arguments: object, **named: object) -> NoReturn:
            pytest.fail("This test starts a process. Mark it: @pytest.mark.processes")

        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
        monkeypatch.setattr(os, "fork", refuse)


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest, django_test_environment: None, django_db_blocker: Any, worker_id: str
) -> Iterator[None]:
    """In the place of pytest-django's: see tests/support/database.py."""
    from django.contrib.contenttypes.models import ContentType
    from django.test import TransactionTestCase

    from tests.support.database import PostgreSQL, SQLite

    database = (PostgreSQL if POSTGRESQL else SQLite)(request.config.cache.mkdir("database"), worker_id)
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        database.make()

        def put_back(test: TransactionTestCase) -> None:
            database.put_back()
            ContentType.objects.clear_cache()

        patch.setattr(TransactionTestCase, "_fixture_teardown", put_back)
        yield
        connection.close()


@pytest.fixture
def operator(db):
    """Create a superuser."""
    return get_user_model().objects.create_superuser("operator", password="a long password")


@pytest.fixture
def stranger(db):
    """A signed-in person who is not staff."""
    return get_user_model().objects.create_user("stranger", password="a long password")
