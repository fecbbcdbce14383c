from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


@pytest.fixture
def at() -> datetime:
    return AT


@pytest.fixture
def old() -> datetime:
    return AT - timedelta(days=200)
