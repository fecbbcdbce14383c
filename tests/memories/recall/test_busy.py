"""Recall beside everything else that goes on, in real processes: it keeps answering, and its index keeps step."""

from __future__ import annotations

import json

import pytest
from django.conf import settings as django_settings

from memories import embedding
from memories.embedding.backfill import backfill
from memories.models import Embedding, Memory, MemoryTerms, Recalled
from memories.recall import Asker, Filters, binary_index, keyword_index, query_vector, recall
from sessions_app.models import Status
from tests.support.factories import MemoryFactory, SessionFactory
from tests.support.models_http import embeddings, serving
from tests.support.processes import call, start, wait_for
from tests.support.streams import init, result, text

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 2
SETUP = "import django; django.setup()\n"
REBUILD = f"""
from django.core.management import call_command
for _ in range({ROUNDS}):
    call_command("embeddings", "rebuild")
"""
SWEEP = f"""
from datetime import datetime, timedelta, timezone
from memories.embedding.backfill import backfill as embed
from memories.lifecycle.sweep import sweep
from memories.tasks import keep_recall
now = datetime.now(timezone.utc)
for day in range({ROUNDS * 3}):
    sweep(now + timedelta(days=5 * day))
    keep_recall()
    embed()
"""
INGEST = """
from sessions_app.runner.ingest import ingest
ingest({session}, final=True)
"""


@pytest.fixture
def model(settings, tmp_path, monkeypatch):
    """Embeddings over HTTP, for this process and for those that it starts."""
    with serving(embeddings) as served:
        of = {"CLAUDEOPS_EMBEDDINGS": "endpoint", "CLAUDEOPS_EMBEDDINGS_URL": served.url}
        of["CLAUDEOPS_EMBEDDINGS_MODEL"] = "words"
        for name, value in of.items():
            setattr(settings, name, value)
            monkeypatch.setenv(name, value)
        settings.CLAUDEOPS_EMBEDDINGS_KEY = ""
        for part in (binary_index, query_vector, keyword_index):
            part.forget()
        embedding.reset()
        yield served
    embedding.reset()
    for part in (binary_index, query_vector, keyword_index):
        part.forget()


def test_recall_keeps_answering_while_a_rebuild_a_sweep_and_an_ingest_run(model):
    lasting = MemoryFactory(observation="The tunnel wg0 drops its peers", category="baseline", confidence=1.0)
    MemoryFactory.create_batch(100)
    keyword_index.catch_up()
    backfill()
    session = SessionFactory(status=Status.RUNNING, tier=1)
    session.log_file = f"sessions/busy-{session.uuid}.jsonl"
    session.save()
    said = [text(f"[MEMORY:behavior:db-{n}] Restarts number {n} at night when the disk is full") for n in range(25)]
    log = django_settings.CLAUDEOPS_DATA_DIR / session.log_file
    log.parent.mkdir(exist_ok=True)
    log.write_text("".join([init(), *said, result()]), encoding="utf-8")
    assert recall("wg0 tunnel peers", Filters()).trace.semantic == "on"
    busy = [start(["-c", SETUP + code]) for code in (REBUILD, SWEEP, INGEST.format(session=session.pk))]
    answers = 0
    try:
        while any(process.poll() is None for process in busy) or answers < 20:
            found = recall("wg0 tunnel peers", Filters(), asked_by=Asker("cli"))
            assert found.hits[0].memory_id == lasting.pk, found.trace
            assert found.trace.semantic == "on"
            json.dumps(found.as_dict(), allow_nan=False)
            answers += 1
    finally:
        outputs = [process.communicate(timeout=120) for process in busy]
    assert [process.returncode for process in busy] == [0, 0, 0], outputs
    assert wait_for(lambda: Recalled.objects.count() == answers)  # those that met a writer follow by a thread
    assert Memory.objects.filter(category="behavior").count() == 25
    keyword_index.catch_up()
    backfill()
    (hit,) = recall("restarts number 21", Filters()).hits[:1]
    assert "number 21 " in hit.observation
    assert hit.parts.cosine is not None
    assert Embedding.objects.filter(model__state="active").count() == Memory.objects.count()


RAW = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("UPDATE memories SET observation = %s WHERE id = %s", ["The printer jams at noon", {edited}])
    cursor.execute("DELETE FROM memories WHERE id = %s", [{deleted}])
    cursor.execute(
        "INSERT INTO memories ({names}) SELECT {values} FROM memories WHERE id = {edited}",
    )
"""


@pytest.mark.parametrize("settled", [True, False], ids=["indexed", "not indexed yet"])
def test_raw_sql_of_another_process_keeps_the_index_in_step(settled, model):
    edited = MemoryFactory(observation="The tunnel drops at night")
    deleted = MemoryFactory(observation="The tunnel drops its peers")
    keyword_index.catch_up()
    backfill()
    assert {hit.memory_id for hit in recall("tunnel", Filters()).hits} == {edited.pk, deleted.pk}
    columns = [field.column for field in Memory._meta.concrete_fields if field.column != "id"]
    new = {"uuid": f"'{'ab' * 16}'", "observation": "'The doorbell rings twice'"}
    code = RAW.format(
        edited=edited.pk,
        deleted=deleted.pk,
        names=", ".join(columns),
        values=", ".join(new.get(name, name) for name in columns),
    )
    process = call(code)
    said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    if settled:
        keyword_index.catch_up()
        backfill()
        added = Memory.objects.get(observation="The doorbell rings twice")
        assert set(MemoryTerms.objects.values_list("memory_id", flat=True)) == {edited.pk, added.pk}
    else:
        added = Memory.objects.get(observation="The doorbell rings twice")
    assert [hit.memory_id for hit in recall("doorbell rings", Filters()).hits][:1] == [added.pk]
    assert [hit.memory_id for hit in recall("printer jams", Filters()).hits][:1] == [edited.pk]
    assert not any("tunnel" in hit.observation for hit in recall("tunnel drops night", Filters()).hits)


HOLD = """
import pathlib, time
from memories.lifecycle.lock import writing
from memories.models import Memory
with writing():
    Memory.objects.update(recall_count=1)
    print("held", flush=True)
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.01)
"""


def test_a_recall_is_answered_while_another_process_writes(model, tmp_path):
    memory = MemoryFactory(observation="The tunnel wg0 drops its peers")
    keyword_index.catch_up()
    backfill()
    go = tmp_path / "go"
    process = call(HOLD.format(go=str(go)))
    try:
        assert process.stdout.readline() == "held\n", process.stderr.read()
        assert [hit.memory_id for hit in recall("wg0", Filters(), asked_by=Asker("cli")).hits] == [memory.pk]
        assert process.poll() is None
    finally:
        go.touch()
        said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert wait_for(lambda: Recalled.objects.count() == 1)
