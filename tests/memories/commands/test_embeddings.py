"""`manage.py embeddings`: as a person types it, and as a program reads it."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.db import OperationalError

from memories import embedding
from memories.embedding import backfill as backfilling
from memories.models import Embedding
from memories.recall import Filters, recall
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def run(capsys, *arguments, **options) -> tuple[int, str, str]:
    code = 0
    try:
        call_command("embeddings", *arguments, **options)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return (code, *capsys.readouterr())


def document(capsys, *arguments) -> dict:
    code, out, _ = run(capsys, *arguments, "--json")
    found = json.loads(out)
    assert found["ok"] is (code == 0)
    assert found["command"] == f"embeddings {arguments[0]}"
    return found


class TestInstall:
    def test_from_a_path_with_lines_for_a_log(self, published, models_dir, capsys):
        code, out, err = run(capsys, "install", str(published))
        assert code == 0
        assert out.startswith(f"tiny is installed in {models_dir / 'tiny'}, from {published}.")
        assert f"{published}: 0.0 MB of 0.0 MB (100 %)" in err
        assert "\r" not in err
        assert run(capsys, "install")[1].startswith(f"tiny is installed in {models_dir / 'tiny'} already.")

    def test_semantic_search_answers_right_after_it(self, published, capsys):
        memory = MemoryFactory(observation="It starts slowly")
        _, out, _ = run(capsys, "install", str(published))
        assert "1 vectors were made. Semantic search is on." in out
        assert embedding.off_reason() is None
        found = recall("slow start", Filters())
        assert (found.trace.semantic, [hit.memory_id for hit in found.hits]) == ("on", [memory.pk])

    def test_without_a_database_it_is_installed_and_workers_make_the_vectors(self, published, capsys, monkeypatch):
        def broken(**options):
            raise OperationalError("no such table: embedding_models")

        monkeypatch.setattr(backfilling, "backfill", broken)
        code, out, _ = run(capsys, "install", str(published))
        assert code == 0
        assert "The vectors are made by the workers" in out

    def test_as_json_stdout_holds_the_document_alone(self, published, models_dir, capsys):
        found = document(capsys, "install", str(published))
        assert found["result"] == {
            "model": "tiny",
            "folder": str(models_dir / "tiny"),
            "source": str(published),
            "new": True,
        }

    def test_what_cannot_be_installed_is_said_with_what_to_do(self, published, tmp_path, capsys):
        code, out, err = run(capsys, "install", str(tmp_path / "nowhere"))
        assert (code, out) == (1, "")
        assert "The model tiny could not be installed: there is no file or folder" in err
        found = document(capsys, "install", str(tmp_path / "nowhere"))
        assert found["error"]["code"] == "model_not_installed"

    def test_with_an_endpoint_there_is_nothing_to_install(self, endpoint, capsys):
        code, _, err = run(capsys, "install")
        assert code == 1
        assert "CLAUDEOPS_EMBEDDINGS is endpoint" in err


class TestStatus:
    def test_without_a_model(self, published, capsys):
        code, out, _ = run(capsys, "status")
        assert (code, out) == (0, "semantic search is off: the model tiny is not installed\n")
        found = document(capsys, "status")
        assert found["result"]["on"] is False
        assert found["result"]["installed"] is False
        assert found["next_actions"][0]["command"] == "manage.py embeddings install"

    def test_with_one_that_answers(self, tiny, capsys):
        MemoryFactory.create_batch(2)
        backfilling.backfill()
        MemoryFactory()
        _, out, _ = run(capsys, "status")
        name = embedding.active_model().name
        assert out == f"semantic search is on\n  {name}: active, 8 dimensions, 2 vectors, 1 memories wait\n"
        (model,) = document(capsys, "status")["result"]["models"]
        assert (model["vectors"], model["waiting"], model["state"]) == (2, 1, "active")

    def test_what_failed_and_what_was_refused_is_there(self, endpoint, capsys):
        MemoryFactory(observation="Refuse me")
        endpoint.answer = lambda texts, model: (400, "too long") if "Refuse" in texts[0] else None
        backfilling.backfill()
        MemoryFactory()
        endpoint.answer = lambda texts, model: (500, "down")
        backfilling.backfill()
        _, out, _ = run(capsys, "status")
        assert 'answers with HTTP 500: "down"' in out.splitlines()[0]
        assert '1 texts were refused, the last: the endpoint refuses it (HTTP 400): "too long"' in out
        assert "the last attempt failed: the endpoint" in out


class TestRebuild:
    def test_it_makes_what_is_missing_and_says_how_much(self, tiny, capsys):
        MemoryFactory.create_batch(3)
        code, out, _ = run(capsys, "rebuild")
        assert (code, out.splitlines()[0]) == (0, "3 vectors were made, 0 were up to date.")
        MemoryFactory()
        assert run(capsys, "rebuild")[1].startswith("1 vectors were made, 3 were up to date.")
        before = set(Embedding.objects.values_list("pk", flat=True))
        assert document(capsys, "rebuild", "--force")["result"]["embedded"] == 4
        assert not before & set(Embedding.objects.values_list("pk", flat=True))

    def test_without_a_model_it_is_refused_and_nothing_is_touched(self, published, capsys):
        code, _, err = run(capsys, "rebuild")
        assert code == 1
        assert "semantic search is off: the model tiny is not installed" in err
        assert "embeddings install" in err

    def test_an_endpoint_that_goes_down_in_between_is_said(self, endpoint, capsys):
        MemoryFactory()
        backfilling.backfill()
        endpoint.answer = lambda texts, model: (500, "down")
        code, _, err = run(capsys, "rebuild", "--force")
        assert code == 1
        assert "It stopped: the endpoint" in err
