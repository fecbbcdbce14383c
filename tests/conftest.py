"""Fixtures that every test may use, and which tests run in which run of the suite.

A test that uses the database runs on SQLite and on PostgreSQL. What does not depend on the database runs in one of the
two: pure tests, browser tests and those marked `one_database` on SQLite, tests that start processes on PostgreSQL.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from hypothesis import HealthCheck, settings

from tests.support.thorough import PROFILE

# Each worker computes on one processor: the threads of several would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: how long an example takes depends on how busy the machine is, not on whether the program is right. A
# property test that uses a fixture resets what its examples share.
settings.register_profile(
    "ci", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=1000)
settings.load_profile(PROFILE)

POSTGRESQL = os.environ.get("TEST_DATABASE") == "postgresql"


def is_whole(config: pytest.Config) -> bool:
    """Whether the command line leaves the choice of tests to us: no path, no `-m`, no `-k`, no `--last-failed`."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["whole"])
    chosen = config.option.markexpr or config.option.keyword or config.getoption("lf", False)
    return config.args_source is not pytest.Config.ArgsSource.ARGS and not chosen


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what it cannot see: the command line of the run."""
    node.workerinput["whole"] = is_whole(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More workers than processors, since browser tests mostly wait, and processes (on PostgreSQL) even longer. None
    where paths are given: a worker takes longer to start than a few tests to run."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return 0 if named else (os.cpu_count() or 1) + (2 if POSTGRESQL else 1)


def uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(item.get_closest_marker("django_db") or fixtures & {"db", "transactional_db", "live_server"})


def has_marker(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def belongs_here(item: pytest.Item) -> bool:
    """Whether a run of the whole suite on this database runs the test."""
    if has_marker(item, "processes", "real_cli"):
        return POSTGRESQL
    return not POSTGRESQL or (uses_database(item) and not has_marker(item, "browser", "one_database"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if not uses_database(item) and not has_marker(item, "processes", "real_cli", "browser"):
            item.add_marker("fast")
    if is_whole(config):
        config.hook.pytest_deselected(items=[item for item in items if not belongs_here(item)])
        items[:] = [item for item in items if belongs_here(item)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if is_whole(config):
        left = "pure tests, browser tests and those marked one_database run on SQLite: pytest"
        if not POSTGRESQL:
            left = "tests that start processes run on PostgreSQL: TEST_DATABASE=postgresql pytest"
        terminalreporter.line(f"Left to the other run: {left}")


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
