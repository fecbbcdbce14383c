"""`manage.py pack`, and promote and copy of `manage.py memory`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from memories.models import Memory
from tests.support import commands
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db


run = commands.run


@pytest.fixture
def memory():
    at = datetime(2026, 6, 1, tzinfo=UTC)
    return MemoryFactory(
        taxonomy="project", category="pattern", project=ProjectFactory(slug="web"), approved_at=at, created_at=at,
        updated_at=at, observation="Tests run with pytest",
    )  # fmt: skip


def test_a_pack_goes_from_one_project_to_another(memory, tmp_path):
    ProjectFactory(slug="shop")
    file = tmp_path / "web.json"
    code, out, _ = run("pack", "export", "--project", "web", file)
    assert (code, f"Approved memories of web in {file}: 1." in out) == (0, True)
    assert "+ [pattern] Tests run with pytest" in run("pack", "diff", file, "--into", "shop")[1]
    assert "Nothing was stored; add --apply." in run("pack", "import", file, "--into", "shop")[1]
    assert Memory.objects.count() == 1
    assert run("pack", "import", file, "--into", "shop", "--apply")[1].startswith("1 new, 0 changed, 0 held")
    document = json.loads(run("pack", "diff", file, "--into", "shop", "--json")[1])
    assert (document["result"]["new"], len(document["result"]["same"])) == ([], 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "--project", "nowhere", "x.json"), "There is no project 'nowhere'."),
        (("export", "--project", "web", "/nowhere/x.json"), "cannot be written: No such file"),
        (("diff", "/nowhere/x.json", "--into", "web"), "cannot be read: No such file"),
        (("diff", "/dev/null", "--into", "web"), "not whole or not JSON"),
        (("import", "x.json", "--into", "web", "--approve"), "cannot be read"),
    ],
)
@pytest.mark.usefixtures("memory")
def test_bad_input_is_named(arguments, said):
    code, _, err = run("pack", *arguments)
    assert code == 1
    assert said in err


def test_promote_and_copy_by_command(memory):
    ProjectFactory(slug="shop")
    code, out, _ = run("memory", "copy", memory.pk, "--to", "shop")
    assert (code, out) == (0, "1 memory copied to shop.\n")
    assert run("memory", "copy", memory.pk, "--to", "shop")[1].startswith("0 memories copied to shop; 1 known there")
    assert run("memory", "promote", memory.uuid)[1] == "1 memory promoted to all projects.\n"
    memory.refresh_from_db()
    assert memory.project is None
    code, _, err = run("memory", "copy", memory.pk, "--to", "nowhere")
    assert (code, "There is no project 'nowhere'." in err) == (1, True)
