"""The command of SessionStart: it hands on what the door answers, and whatever goes wrong is empty and not an error."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sessions_app.runner import start_command

pytestmark = pytest.mark.processes

ANSWER = b'{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "caf\xc3\xa9 $x `id` \\n"}}'
SECRET = "cops_the-secret-of-this-test"
PAYLOAD = '{"session_id": "s-1", "cwd": "/srv/app"}'
CLIENTS = ["curl", "python3"]


class Door:
    """A server that answers each request the same way and keeps what came in."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.processes: list[str] = []
        self.url = ""


@contextmanager
def door(status: int = 200, body: bytes = ANSWER, *, late: bool = False) -> Iterator[Door]:
    """A door that answers at once, or when the test is over."""
    found, over = Door(status, body), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            found.seen.append((self.path, dict(self.headers), data))
            found.processes += [_command_line(one) for one in Path("/proc").glob("[0-9]*/cmdline")]
            if late:
                over.wait(30)
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}/hooks/SessionStart"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            over.set()
            server.shutdown()


def _command_line(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def token(tmp_path: Path) -> str:
    path = tmp_path / "a folder" / "it's.token"
    path.parent.mkdir()
    path.write_text(f"{SECRET}\n")
    return str(path)


@pytest.fixture(params=CLIENTS)
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with this client alone."""
    return only(tmp_path, request.param)


def only(folder: Path, *names: str) -> str:
    (folder / "bin").mkdir()
    for name in names:
        found = shutil.which(name)
        assert found
        (folder / "bin" / name).symlink_to(os.path.realpath(found))
    return str(folder / "bin")


def run(script: str, programs: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", script],
        input=PAYLOAD,
        env={"PATH": programs, **more},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_the_answer_of_the_door_is_printed_and_the_token_is_in_no_list_of_processes(programs, token):
    with door() as there:
        done = run(start_command.command("observe", url=there.url, token=token), programs)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, ANSWER.decode(), "")
    ((path, headers, data),) = there.seen
    assert (path, data.decode()) == ("/hooks/SessionStart", PAYLOAD)
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert headers["Content-Type"] == "application/json"
    assert any(there.url in one for one in there.processes), "the command itself is in the list"
    assert not any(SECRET in one for one in there.processes)


def test_the_token_can_be_in_a_variable(programs):
    with door() as there:
        script = start_command.command("observe", url=there.url, token="$OPS_TOKEN")
        assert run(script, programs).stdout == ""
        assert run(script, programs, OPS_TOKEN=SECRET).stdout.strip() == ANSWER.decode()
    assert [headers["Authorization"] for _, headers, _ in there.seen] == [f"Bearer {SECRET}"]
    assert SECRET not in "".join(there.processes)


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b'{"error": {}}'), (401, b'{"error": {}}'), (200, b"<html>a proxy's page</html>"), (200, b"")],
)
def test_what_is_no_answer_of_the_door_is_not_told(programs, token, status, body):
    with door(status, body) as there:
        done = run(start_command.command("observe", url=there.url, token=token), programs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(there.seen) == 1


def test_a_server_that_is_down_is_not_waited_for_and_nothing_is_said(programs, token):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/hooks/SessionStart"
    done = run(start_command.command("observe", url=url, token=token), programs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("server", [lambda: door(late=True), lambda: silent()], ids=["answers late", "says nothing"])
def test_a_slow_server_is_left_after_two_seconds(programs, token, server):
    with server() as there:
        began = time.monotonic()
        done = run(start_command.command("observe", url=there.url, token=token), programs)
        lasted = time.monotonic() - began
    assert (done.returncode, done.stdout) == (0, "")
    assert start_command.SECONDS - 0.2 <= lasted < 10 * start_command.SECONDS


@contextmanager
def silent() -> Iterator[Door]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Door(0, b"")
        found.url = f"http://127.0.0.1:{server.getsockname()[1]}/hooks/SessionStart"
        yield found


def test_without_a_client_or_without_the_token_nothing_is_said(tmp_path, token):
    with door() as there:
        script = start_command.command("observe", url=there.url, token=token)
        done = run(script, only(tmp_path))
        gone = run(start_command.command("observe", url=there.url, token=f"{token}.gone"), os.environ["PATH"])
    assert [(one.returncode, one.stdout, one.stderr) for one in (done, gone)] == [(0, "", "")] * 2
    assert there.seen == []


def test_a_proxy_of_the_environment_and_a_curlrc_do_not_get_the_token(programs, token, tmp_path):
    (tmp_path / ".curlrc").write_text("include\nverbose\n")
    with door() as there:
        script = start_command.command("observe", url=there.url, token=token)
        done = run(script, programs, http_proxy="http://127.0.0.1:9", HOME=str(tmp_path))
    assert done.stdout.strip() == ANSWER.decode()
    assert "--noproxy" not in start_command.command("observe", url="https://ops.example.org/hooks/X", token=token)


@pytest.mark.parametrize("token", ["$OPS_TOKEN", "/home/user/a folder/it's.token"])
def test_a_command_is_known_as_ours_by_its_first_line(token):
    script = start_command.command("observe", url="http://[::1]:8000/hooks/SessionStart", token=token)
    assert start_command.read(script) == ("observe", "http://[::1]:8000/hooks/SessionStart", token)
    assert start_command.read(f"true\n{script}") is None
    assert start_command.read("./check.sh") is None
