"""A person who types a credential into a memory is told that it was masked."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memories.models import Memory
from tests.support.factories import MemoryFactory

TOKEN = "gh" + "p_" + "a1B2c3D4e" * 4
SAID = "What looks like a credential was masked: GitHub token."

pytestmark = pytest.mark.django_db


def test_adding_one(client, operator):
    client.force_login(operator)
    given = {"observation": f"Deploys with {TOKEN} at night", "category": "timing", "taxonomy": "ops"}
    page = client.post(reverse("memories"), given, follow=True)
    assert SAID in page.content.decode() and TOKEN not in page.content.decode()
    assert Memory.objects.get().observation == "Deploys with [secret: GitHub token] at night"


def test_editing_and_merging(client, operator):
    client.force_login(operator)
    one, other = MemoryFactory(), MemoryFactory()
    given = {"_method": "PUT", "observation": f"Deploys with {TOKEN}", "seen": 0}
    page = client.post(reverse("memory", args=[one.pk]), given, follow=True)
    assert SAID in page.content.decode()
    given = {"action": "merge", "id": [one.pk, other.pk], "target": one.pk, "observation": f"Both with {TOKEN}"}
    page = client.post(reverse("memories-bulk"), {**given, "confirmed": "1"}, follow=True)
    assert SAID in page.content.decode()
    one.refresh_from_db()
    assert one.observation == "Both with [secret: GitHub token]"


def test_in_the_admin(client, operator):
    client.force_login(operator)
    given = {"observation": f"Deploys with {TOKEN}", "category": "timing", "taxonomy": "ops", "reason": ""}
    page = client.post(reverse("admin:memories_memory_add"), given, follow=True)
    assert SAID in page.content.decode() and TOKEN not in page.content.decode()


def test_a_service_that_looks_like_a_credential_is_refused(client, operator):
    client.force_login(operator)
    page = client.post(reverse("memories"), {"observation": "Is slow", "category": "timing", "service": TOKEN})
    assert page.status_code == 422 and "service looks like a credential (GitHub token)" in page.content.decode()
