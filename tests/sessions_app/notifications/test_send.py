"""Task items over real HTTP: sent once, again after a failure, by one of two workers, and never elsewhere."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from memories.models import Proposal, ProposalState, TelemetryRecord, Tier
from sessions_app.notifications import AGAIN_AFTER, LEASE, Sent, send_due
from tests.support.factories import MemoryFileFactory, ProposalFactory
from tests.support.processes import killed

pytestmark = pytest.mark.django_db(transaction=True)


class Server:
    """A task list. `status` is what it answers; `got` are the (headers, document) that arrived."""

    def __init__(self) -> None:
        self.status, self.got = 201, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((dict(self.headers), json.loads(body)))
                self.send_response(outer.status)
                if 300 <= outer.status < 400:
                    self.send_header("Location", "http://127.0.0.1:9/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/tasks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def tasks(settings):
    found = Server()
    settings.CLAUDEOPS_TASK_WEBHOOK = found.url
    settings.CLAUDEOPS_TASK_FORMAT = "json"
    settings.CLAUDEOPS_TASK_TOKEN = "the-token"
    settings.CLAUDEOPS_PUBLIC_URL = "https://ops.example.org/"
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def waiting():
    return ProposalFactory(tier=Tier.PERSON)


def test_what_waits_for_a_person_is_sent_once_with_its_link(tasks, waiting):
    ProposalFactory(file=waiting.file, tier=Tier.MODEL)
    ProposalFactory(file=waiting.file, tier=Tier.PERSON, state=ProposalState.REJECTED)
    assert send_due() == Sent(1)
    assert send_due() == Sent(0)
    ((headers, document),) = tasks.got
    assert headers["Authorization"] == "Bearer the-token"
    assert document["title"] == f"Review memory proposal: {waiting.text}"
    assert document["link"] == f"https://ops.example.org/inbox?item=proposals-{waiting.pk}"
    assert TelemetryRecord.objects.get(action="memory.notify.completed").metadata["sent"] == 1


def test_nothing_is_sent_where_no_target_is_set(tasks, waiting, settings):
    settings.CLAUDEOPS_TASK_WEBHOOK = ""
    assert send_due() == Sent()
    assert tasks.got == []


@pytest.mark.parametrize(("status", "why"), [(500, "HTTP 500"), (401, "HTTP 401"), (302, "sends elsewhere")])
def test_a_failure_is_said_and_tried_again_later(tasks, waiting, status, why):
    tasks.status = status
    now = timezone.now()
    assert why in send_due(at=now).why
    for early in (timedelta(minutes=1), LEASE.lasts, AGAIN_AFTER - timedelta(seconds=1)):
        assert send_due(at=now + early) == Sent()
    tasks.status = 200
    assert send_due(at=now + AGAIN_AFTER) == Sent(1)
    failed = TelemetryRecord.objects.get(action="memory.notify.failed")
    assert not failed.success
    assert "the-token" not in str(failed.metadata)


def test_a_server_that_is_away_is_said(waiting, settings):
    settings.CLAUDEOPS_TASK_WEBHOOK = "http://127.0.0.1:9/"
    assert send_due().why


def test_a_worker_that_is_killed_before_it_is_noted_sends_the_item_again(tasks, waiting, settings):
    work = "from sessions_app.notifications import send_due\nsend_due()"
    more = {"CLAUDEOPS_TASK_WEBHOOK": tasks.url}
    killed(work, "return", "sessions_app.notifications", "_send", more=more)
    assert send_due() == Sent(0)
    assert send_due(at=timezone.now() + LEASE.lasts) == Sent(1)
    assert len(tasks.got) == 2
    assert Proposal.objects.get().notified_at is not None


def test_two_workers_at_once_send_each_item_once(tasks):
    file = MemoryFileFactory()
    for _ in range(12):
        ProposalFactory(file=file, tier=Tier.PERSON)
    together = threading.Barrier(2)

    def work() -> None:
        from django.db import connection

        together.wait()
        send_due()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(document["proposal"]["id"] for _, document in tasks.got) == sorted(
        Proposal.objects.values_list("pk", flat=True)
    )
