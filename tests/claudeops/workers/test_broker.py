"""claudeops.workers.worker: whose tasks a queue takes, in which order, and each of them once."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ

from claudeops.workers.worker import HostBroker
from sessions_app.models import Status, WorkerHeartbeat
from sessions_app.queue import tasks
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def here(settings):
    settings.CLAUDEOPS_HOST = "here"


def put(key: str, payload: str, seconds: float = -1) -> OrmQ:
    return OrmQ.objects.create(key=key, payload=payload, lock=timezone.now() + timedelta(seconds=seconds))


def take(broker: HostBroker) -> list[str]:
    taken = []
    while tasks := broker.dequeue():
        taken += [payload for _, payload in tasks]
    return taken


def test_it_is_the_broker_of_the_house():
    assert isinstance(get_broker("sessions"), HostBroker)


def test_what_is_addressed_to_this_host_goes_first_and_the_rest_in_order():
    for key, payload in [("sessions", "a"), ("sessions", "b"), ("sessions@here", "c"), ("sessions@here", "d")]:
        put(key, payload)
    assert take(HostBroker("sessions")) == ["c", "d", "a", "b"]


def test_other_queues_and_other_hosts_are_left_alone():
    others = [put("default", "a"), put("sessions@there", "b"), put("default@here", "c"), put("sessions2", "d")]
    before = list(OrmQ.objects.order_by("id").values())
    assert HostBroker("sessions").dequeue() == []
    assert list(OrmQ.objects.order_by("id").values()) == before
    assert len(before) == len(others)


def test_a_taken_task_is_not_taken_again_until_the_retry_of_its_queue(settings):
    task = put("sessions", "a")
    broker = HostBroker("sessions")
    assert broker.dequeue() == [(task.pk, "a")]
    assert broker.dequeue() == []
    task.refresh_from_db()
    retry = settings.Q_CLUSTER["ALT_CLUSTERS"]["sessions"]["retry"]
    assert task.lock > timezone.now() + timedelta(seconds=retry - 60)


def test_a_task_that_another_cluster_took_first_is_not_taken(monkeypatch):
    task = put("sessions", "a")
    broker = HostBroker("sessions")
    timeout = broker.timeout

    def the_other_was_faster(row: OrmQ):
        OrmQ.objects.filter(pk=task.pk).update(lock=timezone.now() + timedelta(hours=1))
        return timeout(row)

    monkeypatch.setattr(broker, "timeout", the_other_was_faster)
    assert broker.dequeue() == []


def test_a_task_that_was_acknowledged_is_gone():
    task = put("sessions", "a")
    HostBroker("sessions").acknowledge(task.pk)
    assert not OrmQ.objects.exists()


def test_a_host_whose_workers_are_busy_leaves_wake_ups_to_the_others(settings):
    settings.CLAUDEOPS_SESSION_WORKERS = 2
    SessionFactory.create_batch(2, status=Status.RUNNING, host="here")
    put("sessions", "a")
    put("sessions@here", "b")
    assert take(HostBroker("sessions")) == ["b"]
    settings.CLAUDEOPS_HOST = "there"
    assert take(HostBroker("sessions")) == ["a"]


def test_a_host_takes_no_more_wake_ups_at_once_than_it_has_workers(settings, monkeypatch):
    settings.CLAUDEOPS_SESSION_WORKERS = 2
    for payload in "abcd":
        put("sessions", payload)
    broker = HostBroker("sessions")
    assert take(broker) == ["a", "b"]
    monkeypatch.setattr("claudeops.workers.worker.SETTLE", 0.0)  # both were taken up and have ended again
    assert take(broker) == ["c", "d"]


def test_short_tasks_are_taken_however_many_sessions_run():
    SessionFactory.create_batch(5, status=Status.RUNNING, host="here")
    put("default", "a")
    assert take(HostBroker("default")) == ["a"]


def test_taken_tasks_are_given_back_when_their_worker_is_gone_or_their_retry_is_over():
    at = timezone.now()
    WorkerHeartbeat.objects.create(host="here", cluster="sessions", pid=os.getpid(), beat_at=at)
    WorkerHeartbeat.objects.create(host="there", cluster="sessions", pid=7, beat_at=at - timedelta(minutes=6))
    for key, payload in (("sessions", "any host"), ("sessions@here", "this host")):
        put(key, payload)
    broker = HostBroker("sessions")
    assert take(broker) == ["this host", "any host"]
    put("sessions@there##7", "its worker is gone", 3600)
    put("sessions@there#8", "its worker never beat", 3600)
    put("default", "sent before the clock was set back", 3600)
    assert tasks.give_back_taken(at) == 3
    rows = dict(OrmQ.objects.values_list("payload", "key"))
    assert rows == {
        "any host": f"sessions@here##{os.getpid()}",
        "this host": f"sessions@here#{os.getpid()}",
        "its worker is gone": "sessions",
        "its worker never beat": "sessions@there",
        "sent before the clock was set back": "default",
    }
    broker.hold_until(at - timedelta(seconds=1))  # a worker that starts with the pid of the one before
    assert tasks.give_back_taken(at) == 2
    assert take(HostBroker("sessions")) == ["this host", "any host", "its worker is gone"]
    late = at + timedelta(days=1)
    assert tasks.depths(at)[0].waiting == 1
    WorkerHeartbeat.objects.update(beat_at=late)
    assert tasks.give_back_taken(late) == 3  # theirs: no longer than `retry`, also when the worker lives
    assert not OrmQ.objects.filter(key__contains=tasks.TAKEN).exists()
