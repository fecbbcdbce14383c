"""`manage.py gate explain`: whose words the output of a command counts as."""

from __future__ import annotations

from functools import partial

import pytest

from sessions_app.models import SourceRule
from tests.support import commands
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db

run, result = partial(commands.run, "gate", "explain"), partial(commands.result, "gate", "explain")


def counts_as(command: str, *further: str) -> tuple[str, list[str]]:
    found = result("--command", command, *further)
    assert found["command"] == command
    return found["counts_as"], found["sources"]


def test_commands_count_by_the_table(subtests):
    for command, expected in [
        ("docker ps", ("house", [])),
        ("sudo df -h | sort", ("house", [])),
        ("./check.sh", ("depends", ["command: check.sh"])),
        ("git log -3; cat README.md", ("depends", ["repository: commits", "repository: files"])),
        ("docker logs web", ("outside", ["logs: web"])),
        ("./check.sh && docker logs web", ("outside", ["command: check.sh", "logs: web"])),
        ("echo 'not closed", ("outside", ["command: not understood"])),
    ]:
        with subtests.test(command):
            assert counts_as(command) == expected


def test_source_rules_change_what_they_count_as(subtests):
    for command, rule, kind, expected in [
        ("docker logs web", "Bash(docker logs)", "house", ("house", [])),
        ("docker ps", "Bash(docker ps)", "outside", ("outside", ["listed: docker"])),
        ("df -h", "Bash(df)", "depends", ("depends", ["command: df"])),
        ("cat /etc/in/x", "Read(/etc/in)", "outside", ("outside", ["file: /etc/in"])),
        ("cat /srv/wiki/x", "Read(/srv/wiki)", "house", ("house", [])),
    ]:
        with subtests.test(rule):
            assert counts_as(command) != expected
            SourceRule.objects.create(tool=rule, counts_as=kind, reason="The operator knows.")
            assert counts_as(command) == expected


def test_a_project_whose_authors_are_trusted(tmp_path):
    ProjectFactory(slug="shop", path="/srv/shop", trusts_repository=True)
    ProjectFactory(slug="other", path="/srv/shop-too")
    assert counts_as("pytest -q", "--project", "shop") == counts_as("cat /srv/shop/a.md", "--project", "shop")
    assert counts_as("cat /srv/shop/a.md", "--project", "shop") == ("house", [])
    assert counts_as("pytest -q", "--project", "other") == ("depends", ["command: pytest"])
    assert counts_as("cat /srv/shop/a.md", "--project", "other") == ("outside", ["file: /srv"])


def test_it_says_so_in_words():
    for command, words in (
        ("docker ps", "The own machines"),
        ("./check.sh", "It depends on the text"),
        ("docker logs web", "Outside text"),
    ):
        code, out, _ = run("--command", command)
        assert code == 0 and out.startswith(words) and "a source rule in the admin" in out
    assert "\n  logs: web\n" in out


def test_wrong_input_is_refused(capsys):
    for given, code, words in [
        ([], 2, "the following arguments are required: --command"),
        (["--command"], 2, "argument --command: expected one argument"),
        (["--command", " "], 1, "The command is empty."),
        (["--command", "df", "--project", "nowhere"], 1, "There is no project 'nowhere'."),
    ]:
        refused, out, error = run(*given)
        assert (refused, out) == (code, "") and words in error + capsys.readouterr().err
