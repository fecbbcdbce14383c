"""Several workers at once: one reflection, one call, each proposal once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection

from memories.curate.reflection import reflect
from memories.models import Proposal, Reflection
from tests.memories.curate.reflection.conftest import AT, observed, proposal

pytestmark = pytest.mark.django_db(transaction=True)


def test_four_workers_reflect_once(reflector):
    observed("db_main has 3 replicas.")
    reflector.proposals = [proposal(change="db_main has 3 replicas.")]
    together = Barrier(4, timeout=60)

    def work():
        try:
            together.wait()
            return reflect(None, at=AT + timedelta(hours=1)).outcome
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        found = [one.result() for one in [pool.submit(work) for _ in range(4)]]
    assert found.count("done") == 1
    assert len(reflector.asked) == 1
    assert Reflection.objects.count() == Proposal.objects.count() == 1
