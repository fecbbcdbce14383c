"""The training export: `sessions_app/queries/training.py` and `manage.py export training`."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from django.conf import settings

from sessions_app.models import InjectionReceipt, Session, Status, UsedMemory
from sessions_app.queries.training import BATCH, training_lines
from tests.support import commands
from tests.support.factories import ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SCHEMA = json.loads((Path(settings.BASE_DIR) / "docs" / "training-export.schema.json").read_text())


@pytest.fixture
def web():
    return ProjectFactory(slug="web")


def ended(project, number=0, **fields):
    at = NOW + timedelta(minutes=number)
    return SessionFactory(**{"project": project, "status": Status.COMPLETED, "queued_at": at, "ended_at": at} | fields)


def lines(project, **given):
    return [json.loads(line) for line in training_lines(project, **given)]


def test_a_line_has_prompt_memories_outcome_and_reward(web):
    session = ended(web, prompt="## Task\n\nDo it", num_turns=3, cost_usd="0.25", duration_ms=1200)
    entry = {"id": 7, "uuid": "u", "service": None, "category": "pattern", "confidence": 0.9, "observation": "It is so"}
    InjectionReceipt.objects.create(
        session=session, sha256="", budget=1, tokens=1, included=[entry | {"taxonomy": "project", "reason": ""}]
    )
    UsedMemory.objects.create(session=session, memory_id=7, how="named", helped=True)
    [line] = lines(web)
    jsonschema.validate(line, SCHEMA)
    assert line["prompt"] == "## Task\n\nDo it"
    expected = {"taxonomy": "project", "id": 7, "uuid": "u", "category": "pattern", "observation": "It is so"}
    assert line["injected"] == [expected | {"confidence": 0.9}]
    assert line["used"] == [{"id": 7, "how": "named", "helped": True}]
    assert (line["outcome"], line["reward"], line["turns"], line["cost_usd"]) == ("completed", 1.0, 3, 0.25)


@pytest.mark.parametrize("status", [status for status in Status if status not in ("queued", "running")])
def test_each_end_is_exported_and_only_success_and_failure_are_judged(web, status):
    ended(web, status=status)
    [line] = lines(web)
    jsonschema.validate(line, SCHEMA)
    assert line["reward"] == {"completed": 1.0, "failed": 0.0}.get(status)


def test_open_sessions_and_those_of_other_projects_are_left_out(web):
    ended(ProjectFactory(slug="shop"))
    ended(web, status=Status.QUEUED, ended_at=None)
    ended(web, status=Status.RUNNING, ended_at=None)
    assert lines(web) == []


def test_since_means_the_end_of_a_session(web):
    first, second = ended(web), ended(web, 60)
    assert [line["session"] for line in lines(web, since=second.ended_at)] == [second.pk]
    assert [line["session"] for line in lines(web)] == [first.pk, second.pk]


def test_pages_lose_and_repeat_nothing_even_at_one_moment(web):
    Session.objects.bulk_create(
        Session(project=web, status=Status.COMPLETED, queued_at=NOW, ended_at=NOW) for _ in range(2 * BATCH + 3)
    )
    found = [line["session"] for line in lines(web)]
    assert found == sorted(Session.objects.values_list("pk", flat=True))


def test_a_credential_that_an_older_version_stored_does_not_leave(web):
    session = ended(web)
    secret = "ghp_" + "a1B2" * 9
    Session.objects.filter(pk=session.pk).update(prompt=f"token {secret}", summary=secret)
    assert secret not in "".join(training_lines(web))


@pytest.mark.one_database
def test_memory_is_flat_whatever_the_number_of_sessions(web):
    def fill(count):
        Session.objects.bulk_create(
            [
                Session(project=web, status=Status.COMPLETED, queued_at=NOW, ended_at=NOW, prompt="x" * 2_000)
                for _ in range(count)
            ],
            batch_size=500,
        )

    def peak():
        tracemalloc.start()
        for _ in training_lines(web):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    fill(2 * BATCH)
    few = peak()
    fill(8 * BATCH)
    assert peak() < 1.3 * few


run = partial(commands.run, "export", "training")


def test_the_command_writes_a_file_or_to_stdout(web, tmp_path):
    ended(web)
    file = tmp_path / "runs.jsonl"
    assert run("--project", "web", file)[1] == f"1 session is in {file}.\n"
    assert file.read_text() == run("--project", "web")[1]
    assert list(tmp_path.iterdir()) == [file]
    assert len(run("--project", "web", "--since", "2026-06-02")[1]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--project", "nowhere"), "There is no project 'nowhere'."),
        (("--project", "web", "--since", "yesterday"), "--since is 'yesterday'; allowed is a day or time"),
        (("--project", "web", "/nowhere/x.jsonl"), "/nowhere/x.jsonl cannot be written: No such file"),
        (("--project", "web", "--json"), "--json and an export to stdout do not go together."),
    ],
)
@pytest.mark.usefixtures("web")
def test_bad_input_is_named_and_leaves_no_file(arguments, said):
    code, out, err = run(*arguments)
    assert code == 1
    assert said in out + err
