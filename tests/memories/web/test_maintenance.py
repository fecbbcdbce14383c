"""The pages of the nightly maintenance: the last run, its lists, its undo, a dry run, and who may do what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.roles import OPERATOR, VIEWER
from memories import tasks
from memories.curate.maintenance import begin_by_hand, go_on
from memories.models import MaintenanceRun, Memory
from tests.sessions_app.people import person
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db
SAME = "The backup of jellyfin runs at 03:00 and takes an hour"


@pytest.fixture
def signed_in(client):
    client.force_login(person(OPERATOR))
    return client


def a_run(count: int = 1) -> MaintenanceRun:
    for n in range(count):
        for _ in range(2):
            MemoryFactory(observation=SAME, service=f"media-{n}")
        MemoryFactory(observation="<b>Rack</b> is being moved", service=f"x-{n}", expires_at=timezone.now())
    return go_on(begin_by_hand(by="paula"))


def test_without_a_run_the_page_says_when_the_first_one_begins(signed_in):
    assert "No run yet" in signed_in.get("/maintenance").content.decode()


def test_the_last_run_stands_there_with_its_lists(signed_in):
    run = a_run()
    page = signed_in.get("/maintenance").content.decode()
    assert "changed 2 memories" in page and f'href="/maintenance/{run.pk}/merged"' in page
    assert signed_in.get(f"/maintenance/{run.pk}").status_code == 200
    step = signed_in.get(f"/maintenance/{run.pk}/expired").content.decode()
    assert "&lt;b&gt;Rack&lt;/b&gt; is being moved" in step and "It has expired." in step
    assert signed_in.get(f"/maintenance/{run.pk}/judged").status_code == 404
    assert f'href="/maintenance/{run.pk}"' in signed_in.get("/maintenance/runs").content.decode()


def test_undo_gives_back_a_step_and_then_the_rest(signed_in):
    run = a_run()
    answer = signed_in.post(f"/maintenance/{run.pk}/undo", {"step": "expired"}, follow=True)
    assert "1 memory is as it was before" in answer.content.decode()
    assert Memory.objects.filter(active=True).count() == 2
    signed_in.post(f"/maintenance/{run.pk}/undo")
    assert Memory.objects.filter(active=True).count() == 3
    again = signed_in.post(f"/maintenance/{run.pk}/undo", follow=True).content.decode()
    assert "as they were before already" in again


def test_a_wrong_step_and_a_run_of_before_are_refused_in_words(signed_in):
    run = a_run()
    answer = signed_in.post(f"/maintenance/{run.pk}/undo", {"step": "judged"}, follow=True).content.decode()
    assert "cannot be undone" in answer
    MaintenanceRun.objects.update(finished_at=timezone.now() - timedelta(days=2))
    assert "can no longer be undone" in signed_in.post(f"/maintenance/{run.pk}/undo", follow=True).content.decode()


def test_a_run_by_hand_is_left_to_a_worker(signed_in):
    signed_in.post("/maintenance/start")
    signed_in.post("/maintenance/start")
    run = MaintenanceRun.objects.get()
    assert (run.state, run.night) == ("running", None)
    page = signed_in.get("/maintenance").content.decode()
    assert "so far" in page and "Undo" not in page
    tasks.maintain()
    run.refresh_from_db()
    assert run.state == "done"


def test_a_dry_run_writes_nothing(signed_in):
    MemoryFactory(observation=SAME)
    MemoryFactory(observation=SAME)
    page = signed_in.get("/maintenance/dry-run").content.decode()
    assert "Says the same as memory" in page
    assert Memory.objects.filter(active=True).count() == 2 and not MaintenanceRun.objects.exists()


def test_a_viewer_sees_and_changes_nothing(client):
    run = a_run()
    client.force_login(person(VIEWER))
    page = client.get("/maintenance").content.decode()
    assert "Undo" not in page and "Run it now" not in page
    assert client.post(f"/maintenance/{run.pk}/undo").status_code == 403
    assert client.post("/maintenance/start").status_code == 403
    assert client.get("/maintenance/dry-run").status_code == 403


def test_the_pages_take_as_many_queries_for_more_runs_and_memories(signed_in):
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as found:
            assert signed_in.get(path).status_code == 200
        return len(found)

    run = a_run(10)
    paths = ("/maintenance", "/maintenance/runs", f"/maintenance/{run.pk}/expired")
    signed_in.get("/maintenance")
    few = [queries(path) for path in paths]
    for _ in range(3):
        more = a_run(20)
    assert [queries(path.replace(str(run.pk), str(more.pk))) for path in paths] == few
