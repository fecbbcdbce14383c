"""What every test may ask for."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from hypothesis import settings

# How long an example takes says how busy the machine is, not whether the program is right.
settings.register_profile("claudeops", deadline=None)
settings.load_profile("claudeops")


@pytest.fixture
def operator(db):
    """A superuser: the operator of the house."""
    return get_user_model().objects.create_superuser("operator", password="a long password")


@pytest.fixture
def stranger(db):
    """A signed-in person who is not staff."""
    return get_user_model().objects.create_user("stranger", password="a long password")
