"""`manage.py hook`: the CLI's settings files get our hooks and lose them again, and nothing else happens to them."""

from __future__ import annotations

import io
import json
import os
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from memories.access import add_token
from memories.models import ApiToken
from sessions_app.hooks import settings_file
from sessions_app.models import HookHeard, TranscriptFolder
from tests.memories.curate.repositories import git, make
from tests.support import commands
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db

THEIRS = (
    json.dumps({"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}, indent=2)
    + "\n"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The person's folder of the CLI."""
    folder = tmp_path / "home" / ".claude"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return folder


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


run = partial(commands.run, "hook")
answered = partial(commands.result, "hook")


def ours(text: str) -> list[dict]:
    return [
        hook
        for entries in json.loads(text)["hooks"].values()
        for entry in entries
        for hook in entry["hooks"]
        if hook["type"] == "http"
    ]


def test_installing_writes_hooks_with_a_new_token_that_opens_the_door(home, client):
    code, out, _ = run("install", "--agents", "--cooldowns", "--yes")
    assert code == 0
    assert out.startswith(f"Installed in {home}/settings.json.")
    hooks = ours((home / "settings.json").read_text())
    assert [hook["url"].rpartition("/")[2] for hook in hooks] == ["SubagentStart", "SubagentStop", "PreToolUse"]
    assert {hook["url"].rpartition("/hooks/")[0] for hook in hooks} == {"http://127.0.0.1:8000"}
    authorization = hooks[0]["headers"]["Authorization"]
    answer = client.post(
        "/hooks/SubagentStop",
        b'{"session_id": "s"}',
        content_type="application/json",
        headers={"Authorization": authorization},
    )
    assert answer.status_code == 200
    token = ApiToken.objects.get()
    assert (token.scopes, token.project) == (["hook"], None)
    assert token.name.startswith("hooks: ")
    assert (home / "settings.json").stat().st_mode & 0o777 == 0o600, "the file holds a token"


def test_installing_twice_changes_nothing_the_second_time(home):
    run("install", "--agents", "--yes")
    before = (home / "settings.json").read_text()
    assert answered("install", "--agents", "--yes")["difference"] == ""
    assert (home / "settings.json").read_text() == before
    assert ApiToken.objects.count() == 1


def test_a_further_set_uses_the_same_token_and_keeps_the_first(home):
    run("install", "--agents", "--yes")
    run("install", "--cooldowns", "--fail-closed", "--url", "https://ops.example.org/", "--yes")
    hooks = ours((home / "settings.json").read_text())
    assert len(hooks) == 3
    assert len({hook["headers"]["Authorization"] for hook in hooks}) == 1
    assert hooks[2]["url"] == "https://ops.example.org/hooks/PreToolUse"
    assert [hook.get("onFailure") for hook in hooks] == [None, None, "block"]
    run("install", "--cooldowns", "--yes")
    assert "onFailure" not in (home / "settings.json").read_text()


def test_a_dry_run_shows_the_difference_without_secrets_and_changes_nothing(home):
    secret = add_token("mine", ["hook"], by="anna")[1]
    (home / "settings.json").write_text(THEIRS)
    code, out, err = run("install", "--agents", "--token", secret, "--dry-run")
    assert (code, err) == (0, "")
    assert '+    "SubagentStart": [' in out
    assert out.endswith("Nothing was changed (--dry-run).\n")
    assert secret not in out + err
    assert (home / "settings.json").read_text() == THEIRS
    assert run("install", "--agents", "--dry-run")[0] == 0
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(("said", "written"), [("y", True), ("YES", True), ("", False), ("no", False)])
def test_it_asks_before_it_writes(home, monkeypatch, said, written):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: said)
    code, _, err = run("install", "--agents")
    assert code == 0
    assert "+++" in err
    assert (home / "settings.json").exists() is written
    assert ApiToken.objects.exists() is written


def test_where_nobody_can_answer_nothing_is_written(home, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, _, err = run("install", "--agents")
    assert code == 1
    assert "--yes" in err
    assert not (home / "settings.json").exists()


def test_the_mode_and_all_else_of_a_file_stay(home):
    path = home / "settings.json"
    path.write_bytes(b"\xef\xbb\xbf" + THEIRS.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    _, out, _ = run("install", "--agents", "--yes")
    assert path.stat().st_mode & 0o777 == 0o640
    assert "Others on this machine can read the file" in out
    assert path.read_bytes().startswith(b'\xef\xbb\xbf{\r\n  "model": "opus",\r\n')
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    code, out, _ = run("uninstall", "--yes")
    assert code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + THEIRS.replace("\n", "\r\n").encode()
    assert path.stat().st_mode & 0o777 == 0o640


def test_uninstalling_removes_the_file_and_the_token_that_installing_made(home, client):
    run("install", "--agents", "--yes")
    HookHeard.objects.create(event="SubagentStop", installation=ApiToken.objects.get().name)
    code, out, _ = run("uninstall", "--yes")
    assert code == 0
    assert not (home / "settings.json").exists()
    assert ApiToken.objects.get().revoked_at is not None
    assert "is revoked" in out
    assert not HookHeard.objects.exists()
    assert "No hook of ours" in run("uninstall", "--yes")[1]
    run("install", "--agents", "--yes")  # names of tokens are not reused
    assert ApiToken.objects.filter(revoked_at=None).get().name.endswith(" 2")


def test_one_set_is_taken_out_and_the_token_stays_with_the_other(home):
    run("install", "--agents", "--cooldowns", "--yes")
    run("uninstall", "--agents", "--yes")
    assert [hook["url"].rpartition("/")[2] for hook in ours((home / "settings.json").read_text())] == ["PreToolUse"]
    assert ApiToken.objects.get().revoked_at is None


def test_a_token_that_a_person_made_is_not_revoked(home):
    secret = add_token("mine", ["hook"], by="anna")[1]
    run("install", "--agents", "--token", secret, "--yes")
    run("uninstall", "--yes")
    assert ApiToken.objects.get().revoked_at is None


def test_a_projects_hooks_are_in_its_local_settings_with_a_token_for_it_alone(home, repository):
    project = ProjectFactory(path=str(repository))
    code, out, _ = run("install", "--project", str(repository), "--agents", "--yes")
    assert code == 0
    assert (repository / ".claude" / "settings.local.json").exists()
    assert not (repository / ".claude" / "settings.json").exists()
    assert "keep it out of version control" in out
    assert ApiToken.objects.get().project == project
    run("uninstall", "--project", str(repository), "--yes")
    assert not list((repository / ".claude").iterdir())


def test_git_ignores_the_file_with_the_token_or_the_installer_says_that_it_does_not(home, tmp_path, subtests):
    """In a repository, a worktree, a folder of it with odd signs, and a home that is a repository."""
    local = ".claude/settings.local.json"
    git(home, "init", "-q")
    make(tmp_path / "shop", "# Memory\n")
    git(tmp_path / "shop", "worktree", "add", "-q", str(tmp_path / "shop-v1"))
    folders = {"main": "shop", "worktree": "shop-v1", "below": "shop/a [b] *c"}
    for name, place in folders.items():
        with subtests.test(name):
            folder = tmp_path / place
            folder.mkdir(exist_ok=True)
            _, out, _ = run("install", "--project", str(folder), "--agents", "--observe", "--yes")
            assert f"{folder}/{local} holds a token: git ignores it." in out
            assert git(folder, "check-ignore", str(folder / local)) and git(folder, "status", "--porcelain") == ""
            rules = (tmp_path / "shop/.git/info/exclude").read_text()
            _, out, _ = run("install", "--project", str(folder), "--agents", "--observe", "--yes")
            assert "installed already" in out and "git ignores it" in out
            assert (tmp_path / "shop/.git/info/exclude").read_text() == rules
    ignoring = make(tmp_path / "ignoring", "# Memory\n").parent
    (ignoring / ".gitignore").write_text("*.local.json\n")
    rules = (ignoring / ".git/info/exclude").read_text()
    assert "git ignores it" in run("install", "--project", str(ignoring), "--agents", "--yes")[1]
    assert (ignoring / ".git/info/exclude").read_text() == rules
    including = make(tmp_path / "including", "# Memory\n").parent
    (including / ".gitignore").write_text("!*.json\n")
    _, out, _ = run("install", "--project", str(including), "--agents", "--yes")
    assert f"git does not ignore it: A rule of .gitignore takes {local} in again." in out
    tracking = make(tmp_path / "tracking", "# Memory\n").parent
    (tracking / ".claude").mkdir()
    (tracking / local).write_text("{}\n")
    git(tracking, "add", "-f", local)
    _, out, _ = run("install", "--project", str(tracking), "--agents", "--yes")
    assert f"git tracks {tracking}/{local}, so the next commit holds its token. Run: git rm --cached" in out
    _, out, _ = run("install", "--observe", "--yes")
    assert out.count("git ignores it") == 2 and git(home, "status", "--porcelain") == ""


def test_with_the_name_of_a_variable_a_projects_hooks_are_shared_and_hold_no_secret(home, repository):
    code, out, _ = run("install", "--project", str(repository), "--agents", "--token", "$OPS_TOKEN", "--yes")
    assert code == 0
    assert "export it" in out
    (hook, _) = ours((repository / ".claude" / "settings.json").read_text())
    assert hook["headers"]["Authorization"] == "Bearer $OPS_TOKEN"
    assert hook["allowedEnvVars"] == ["OPS_TOKEN"]
    assert not ApiToken.objects.exists()
    run("uninstall", "--project", str(repository), "--yes")
    assert not list((repository / ".claude").iterdir())


def start_of(text: str) -> str:
    ((hook,),) = [entry["hooks"] for entry in json.loads(text)["hooks"]["SessionStart"]]
    return hook["command"]


def test_observing_puts_the_token_of_the_command_into_a_file_of_its_user(home):
    (home / "settings.json").write_text(THEIRS)
    assert run("install", "--observe", "--yes")[0] == 0
    text = (home / "settings.json").read_text()
    (path,) = (home / "claudeops").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    (secret,) = {hook["headers"]["Authorization"].removeprefix("Bearer ") for hook in ours(text)}
    assert path.read_text() == f"{secret}\n"
    assert str(path) in start_of(text) and secret not in start_of(text)
    assert answered("install", "--observe", "--yes")["difference"] == ""
    assert ApiToken.objects.count() == 1
    path.unlink()
    assert "holds no token" in answered("status")[0]["problem"]
    run("install", "--observe", "--yes")
    assert path.read_text() == f"{secret}\n", "what is missing is written again"
    run("uninstall", "--yes")
    assert not path.exists()
    assert (home / "settings.json").read_text() == THEIRS


def test_observing_has_the_transcripts_folder_swept_from_then_on(home, repository, settings):
    settings.CLAUDEOPS_HOST = "here"
    project = ProjectFactory(path=str(repository))
    before = timezone.now()
    run("install", "--observe", "--yes")
    run("install", "--project", str(repository), "--observe", "--yes")
    rows = {row.project_path: row for row in TranscriptFolder.objects.all()}
    assert set(rows) == {"", str(repository)}
    assert {(row.host, row.path) for row in rows.values()} == {("here", str(home / "projects"))}
    assert rows[""].since >= before
    assert rows[str(repository)].installation == ApiToken.objects.get(project=project).name
    run("install", "--observe", "--url", "https://ops.example.org", "--yes")
    assert TranscriptFolder.objects.get(project_path="").since == rows[""].since, "it goes on where it was"
    run("uninstall", "--cooldowns", "--yes")
    assert TranscriptFolder.objects.count() == 2
    run("uninstall", "--yes")
    assert TranscriptFolder.objects.get().project_path == str(repository)
    (repository / ".claude" / "settings.local.json").unlink()  # by hand
    run("uninstall", "--project", str(repository), "--observe", "--yes")
    assert not TranscriptFolder.objects.exists()


def test_with_the_name_of_a_variable_observing_writes_no_token(home, repository, monkeypatch):
    monkeypatch.setenv("OPS_TOKEN", add_token("mine", ["hook"], by="anna")[1])
    run("install", "--project", str(repository), "--observe", "--token", "$OPS_TOKEN", "--yes")
    script = start_of((repository / ".claude" / "settings.json").read_text())
    assert '"${OPS_TOKEN-}"' in script
    assert not (home / "claudeops").exists()
    assert TranscriptFolder.objects.get().installation == "mine"
    assert {one["installation"] for one in answered("status", "--project", str(repository))} == {"mine"}


def test_a_dry_run_of_observing_writes_nothing(home):
    assert run("install", "--observe", "--dry-run")[0] == 0
    assert not list(home.iterdir())
    assert not TranscriptFolder.objects.exists()


def _link(path):
    (path.parent / "elsewhere.json").write_text(THEIRS)
    path.symlink_to(path.parent / "elsewhere.json")


SPOILED = {
    "a link": (_link, "is a link to"),
    "no JSON": (lambda path: path.write_text('{"model": '), "not JSON"),
    "a list": (lambda path: path.write_text("[]"), "no JSON object"),
    "empty": (lambda path: path.write_text(""), "not JSON"),
    "not UTF-8": (lambda path: path.write_bytes(b'{"a": "\xff"}'), "not UTF-8"),
    "too big": (lambda path: path.write_bytes(b" " * (settings_file.LARGEST + 1)), "more than"),
    "a folder": (lambda path: path.mkdir(), "cannot be read"),
    "a pipe": (os.mkfifo, "it is left alone"),
}


@pytest.mark.parametrize("spoiled", SPOILED)
@pytest.mark.parametrize("verb", [["install", "--agents"], ["uninstall"]])
def test_a_file_that_is_not_ours_to_write_is_left_alone_with_an_error(home, spoiled, verb):
    path = home / "settings.json"
    spoil, said = SPOILED[spoiled]
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    code, _, err = run(*verb, "--yes")
    assert code == 1
    assert said in err
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not ApiToken.objects.exists()
    assert said in run("status")[1]


def test_a_folder_that_is_a_link_is_left_alone(home, repository, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (repository / ".claude").symlink_to(tmp_path / "elsewhere")
    code, _, err = run("install", "--project", str(repository), "--agents", "--yes")
    assert code == 1
    assert "is a link to" in err
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_of_another_user_is_left_alone(home, monkeypatch):
    (home / "settings.json").write_text(THEIRS)
    monkeypatch.setattr(settings_file.os, "geteuid", lambda: os.getuid() + 1)
    code, _, err = run("install", "--agents", "--yes")
    assert code == 1
    assert "no file of the current user" in err


def test_a_file_that_changes_while_it_asks_is_left_alone(home, monkeypatch):
    path = home / "settings.json"
    path.write_text(THEIRS)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def meanwhile(question):
        path.write_text(THEIRS + "\n")
        return "y"

    monkeypatch.setattr("builtins.input", meanwhile)
    code, _, err = run("install", "--agents")
    assert code == 1
    assert "was changed meanwhile" in err
    assert path.read_text() == THEIRS + "\n"
    assert not ApiToken.objects.exists()


def test_a_write_that_fails_leaves_the_old_file_and_no_token(home, monkeypatch):
    path = home / "settings.json"
    path.write_text(THEIRS)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settings_file, "replace_file", full)
    code, _, err = run("install", "--agents", "--yes")
    assert code == 1
    assert "No space left on device" in err
    assert path.read_text() == THEIRS
    assert not ApiToken.objects.exists()


def test_a_file_with_comments_is_left_alone_and_said_to_be_ignored_by_the_cli(home):
    (home / "settings.json").write_text('{\n  // mine\n  "model": "opus"\n}\n')
    code, _, err = run("install", "--agents", "--yes")
    assert code == 1
    assert "Claude Code ignores such a file" in err
    assert "// mine" in (home / "settings.json").read_text()
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["install"],
        ["install", "--agents", "--fail-closed"],
        ["install", "--prompts", "--fail-closed"],
        ["install", "--agents", "--prompts", "--yes"],
        ["install", "--project", "/nowhere", "--agents", "--yes"],
        ["install", "--observe", "--url", "ftp://x", "--yes"],
        ["install", "--observe", "--url", "http://x/\ntouch y", "--yes"],
        ["install", "--observe", "--token", "$X;touch y", "--yes"],
    ],
)
def test_wrong_usage_is_refused(home, arguments):
    assert run(*arguments)[0] == 1


def test_the_status_says_for_each_hook_when_it_was_heard_and_whether_the_file_has_it(home, repository):
    ProjectFactory(path=str(repository))
    ProjectFactory(path="/no/such/folder")
    run("install", "--agents", "--yes")
    run("install", "--project", str(repository), "--cooldowns", "--yes")
    token = ApiToken.objects.get(project=None)
    hour = timezone.now() - timedelta(hours=1)
    HookHeard.objects.create(event="SubagentStart", installation=token.name, last_at=hour, calls=7, problem="Odd.")
    HookHeard.objects.create(event="PreToolUse", installation="sessions", last_at=hour, calls=3)
    HookHeard.objects.create(event="Stop", installation="another laptop", last_at=hour, calls=1)
    found = answered("status")
    assert [(one["event"], one["name"], one["file"], one["calls"], one["problem"]) for one in found] == [
        ("SubagentStart", "agents", f"{home}/settings.json", 7, "Odd."),
        ("SubagentStop", "agents", f"{home}/settings.json", 0, ""),
        ("PreToolUse", "cooldowns", f"{repository}/.claude/settings.local.json", 0, ""),
        ("PreToolUse", "", None, 3, ""),
        ("Stop", "", None, 1, ""),
    ]
    text = run("status")[1]
    assert " ago" in text
    assert "never" in text
    assert "in no file of this host" in text
    assert "our own sessions" in text


def test_the_status_says_what_is_wrong_with_a_token(home, monkeypatch):
    run("install", "--agents", "--yes")
    ApiToken.objects.update(revoked_at=timezone.now())
    assert "is revoked" in answered("status")[0]["problem"]
    ApiToken.objects.update(revoked_at=None, expires_at=timezone.now() - timedelta(1))
    assert "has expired" in answered("status")[0]["problem"]
    ApiToken.objects.all().delete()
    assert "does not know its token" in answered("status")[0]["problem"]
    run("install", "--agents", "--token", "$OPS_TOKEN", "--yes")
    assert "$OPS_TOKEN is not set here" in answered("status")[0]["problem"]
    monkeypatch.setenv("OPS_TOKEN", add_token("mine", ["hook"], by="anna")[1])
    assert (answered("status")[0]["installation"], answered("status")[0]["problem"]) == ("mine", "")


def test_the_status_of_many_projects_takes_no_more_queries(home, tmp_path, django_assert_num_queries):
    secret = add_token("mine", ["hook"], by="anna")[1]
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        ProjectFactory(path=str(tmp_path / str(number)))
        run("install", "--project", str(tmp_path / str(number)), "--agents", "--token", secret, "--yes")
        if number in (9, 19):
            with django_assert_num_queries(4):
                answered("status")


def test_without_anything_the_status_says_so(home):
    assert run("status")[1].startswith("No hook is installed here")


def test_status_names_the_folders_of_transcripts_that_are_swept(home):
    now = timezone.now()
    TranscriptFolder.objects.create(
        host="nuc-1",
        path="/srv/projects",
        installation="laptop",
        swept_at=now - timedelta(minutes=3),
        last_at=now - timedelta(hours=2),
        last_path="/srv/projects/a.jsonl",
        problem="The folder cannot be read.",
    )
    code, out, _ = run("status")
    assert code == 0
    for words in ("/srv/projects on nuc-1", "laptop", "a.jsonl, 2", "The folder cannot be read."):
        assert words in out
