"""What the tests of transcripts share: observation is on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.memories.llm.conftest import recordings  # noqa: F401  # a fixture


@pytest.fixture(autouse=True)
def observing(settings: Any) -> None:
    settings.CLAUDEOPS_OBSERVE = True
