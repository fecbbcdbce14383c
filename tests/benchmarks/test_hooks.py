"""How long a session of the CLI waits for each hook, when so many memories are there. Over HTTP, as the CLI calls."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.utils import timezone

from claudeops.workers.up import web_argv
from memories.access import add_token
from memories.files.sync import sync_file
from memories.models import AgentFileEntry, Memory, Project
from memories.recall import keyword_index
from memories.taxonomy import AGENT
from sessions_app.models import CooldownAction, Event, HookReceipt, Session
from sessions_app.runner import start_command
from sessions_app.runner.agent_hooks import TIMEOUT
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.benchmarks.rows import LEVELS, put
from tests.support import processes

pytestmark = pytest.mark.django_db(transaction=True)

LEARNED, PROJECTS, AT_ONCE = 60, 20, 8
BESIDE = "SubagentStart, beside a writer"
TELLING = ("SubagentStart", "SessionStart", "UserPromptSubmit")
CLIENTS = ("curl", "python3")
TOKENS = 64
"""So many that no token calls more often than the door allows."""

FOUND = "Does restarting the {} container clear the stale lock file?"
COMMON = "Does restarting the container clear the stale lock file?"
TOLD = (None, FOUND, COMMON)
"""The prompts that are answered; no prompt is that of another hook."""
ASKED = (10_000_303, 10_000_803)
"""The numbers of two more operational memories, of all projects, that say this of their containers."""

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "PreToolUse, ls": ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "ls -la src | head"}}),
    "PreToolUse, a restart": ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "docker restart web"}}),
    "SubagentStart": ("SubagentStart", {"agent_type": "engineering"}),
    "SubagentStop": (
        "SubagentStop",
        {
            "agent_type": "engineering",
            "last_assistant_message": "Done.\n\n# Add To Memory:\nType: pattern\nContent: Prices are in cents\n#\n",
        },
    ),
    "SessionStart, the briefing": ("SessionStart", {"source": "startup"}),
    "UserPromptSubmit, it finds memories": ("UserPromptSubmit", {"prompt": FOUND}),
    "UserPromptSubmit, common words alone": (
        "UserPromptSubmit",
        {"prompt": COMMON},
    ),
    "UserPromptSubmit, nothing matches": (
        "UserPromptSubmit",
        {"prompt": "Write a test for the parser of invoices, and sort the imports of the module"},
    ),
    "UserPromptSubmit, thanks": ("UserPromptSubmit", {"prompt": "thanks, go on"}),
    "PreCompact": ("PreCompact", {"trigger": "auto", "transcript_path": "/nowhere/x.jsonl"}),
    "SessionEnd": ("SessionEnd", {"reason": "exit", "transcript_path": "/nowhere/x.jsonl"}),
}


WRITER = """
from itertools import count
from memories import store
from memories.capture.statement import Provenance, Statement
for number in count():
    said = Statement("behavior", f"The nightly job of part {number} ends after {number} s", f"service-{number % 100}")
    store.remember(said, Provenance("run", "agent:writer"))
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def web_server() -> Iterator[tuple[int, psutil.Process]]:
    """The web server as `up` starts it, on the database of the test: its port, and the process that answers."""
    port = free_port()
    process = processes.start(web_argv("127.0.0.1", port)[1:], {"CLAUDEOPS_PLAIN_HTTP": "1"})
    try:
        processes.wait_for(lambda: answers(port), 60)
        (worker,) = psutil.Process(process.pid).children()
        yield port, worker
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def writing() -> Iterator[None]:
    """Another process stores memories all the time."""
    before = Memory.objects.count()
    process = processes.call(WRITER)
    try:
        processes.wait_for(lambda: Memory.objects.count() > before, 60)
        yield
        assert process.poll() is None, process.communicate()
    finally:
        process.kill()
        process.wait(30)


def answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False


class Cli:
    """Calls hooks over one connection, as the CLI does."""

    def __init__(self, port: int, secrets: list[str]) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        self.secrets, self.calls = secrets, 0

    def call(self, event: str, fields: dict[str, Any], cwd: str) -> dict[str, Any]:
        self.calls += 1
        number = uuid.uuid4().hex  # of a session that was told nothing yet
        given = {"session_id": f"s-{number}", "hook_event_name": event, "cwd": cwd, "agent_id": f"a-{number}"}
        prompt = fields.get("prompt")
        if prompt == FOUND:
            fields = {"prompt": FOUND.format(facts.word(ASKED[self.calls % 2]))}
        headers = {"Authorization": f"Bearer {self.secrets[self.calls % len(self.secrets)]}"}
        self.connection.request("POST", f"/hooks/{event}", json.dumps(given | fields), headers)
        response = self.connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        assert (b"additionalContext" in body) == (event in TELLING and prompt in TOLD), body
        return dict(json.loads(body))


def happened(size: int, projects: list[Project]) -> None:
    """Store so many events of ninety days, and a session to each ten of them."""
    now = timezone.now()
    ago = [now - timedelta(days=90) * ((size - number) / size) for number in range(size)]
    put(
        Session,
        size // 10,
        lambda number: {
            "uuid": uuid.uuid4(),
            "status": "failed" if number % 20 == 0 else "completed",
            "project_id": projects[number % PROJECTS].pk,
            "queued_at": ago[10 * number],
            "summary": f"Looked at {facts.service(number)}: all its checks pass",
        },
    )
    put(
        Event,
        size,
        lambda number: {
            "session_id": number // 10 + 1,
            "level": LEVELS[number % len(LEVELS)],
            "service": facts.service(number),
            "message": facts.observation(number),
            "created_at": ago[number],
            "fingerprint": str(number),
        },
    )


def of_taxonomy(number: int, project: Project) -> dict[str, Any]:
    """A quarter each: knowledge and project memories, in twenty projects, operational ones there and anywhere."""
    return (
        {"taxonomy": "knowledge", "category": "operations", "project": project},
        {"taxonomy": "project", "category": "pattern", "project": project},
        {"project": project},
        {},
    )[number % 4]


def fill(size: int, repository: Path) -> None:
    """Store so many memories in twenty projects; the file of one agent has sixty lines."""
    facts.forget()
    for table in (Event, CooldownAction, HookReceipt, Session, Project):
        table.objects.all().delete()
    projects = [
        Project.objects.create(slug=f"project-{number}", path=str(repository / f"part-{number}"))
        for number in range(PROJECTS)
    ]
    (repository / "part-0").mkdir(exist_ok=True)
    facts.store(size, lambda number: of_taxonomy(number, projects[number // 4 % PROJECTS]))
    for number in ASKED:
        facts.store(1, lambda number: {}, first=number)
    Memory.objects.bulk_create(
        Memory(
            taxonomy="agent",
            agent="engineering",
            project=projects[0],
            category=AGENT.categories[number % len(AGENT.categories)],
            observation=f"The {facts.word(number)} service of the shop answers within a second",
            confidence=0.9,
            source="human",
        )
        for number in range(LEARNED)
    )
    keyword_index.catch_up()
    facts.settle()
    sync_file(projects[0], "engineering", create=True)
    assert AgentFileEntry.objects.filter(left_because="").count() == LEARNED
    happened(size, projects)
    CooldownAction.objects.bulk_create(
        CooldownAction(
            service=f"service-{number % 20}",
            action="restart",
            outcome="success",
            session_id=1,
            fingerprint=f"{number}",
            created_at=timezone.now() - timedelta(days=90) * (number / 2000),
        )
        for number in range(2000)
    )


def test_answering_hooks(report: Report, sizes: list[int], smoke: bool, tmp_path: Path) -> None:
    secrets = [add_token(f"laptop {number}", ["hook"], by="anna")[1] for number in range(TOKENS)]
    rows = []
    cwd = str(tmp_path / "part-0" / "src")
    times = 1 if smoke else 40
    for size in sizes:
        fill(size, tmp_path)
        with web_server() as (port, worker):
            for name, (event, fields) in CALLS.items():
                for at_once in (1, AT_ONCE):
                    before = sum(worker.cpu_times()[:2])
                    series = measured(port, secrets, event, fields, cwd, at_once, 2 if smoke else 200 // at_once)
                    each = (sum(worker.cpu_times()[:2]) - before) / len(series.seconds)
                    rows.append((name, f"{size:,}", str(at_once), ms(each), ms(series.median), ms(series.p95)))
            event, fields = CALLS["SubagentStart"]
            with writing():
                series = measured(port, secrets, event, fields, cwd, 1, 2 if smoke else 200)
            rows.append((BESIDE, f"{size:,}", "1", "-", ms(series.median), ms(series.p95)))
            for client in CLIENTS:
                rows.append((f"SessionStart by {client}", f"{size:,}", *start(client, port, secrets, tmp_path, times)))
    rows += [("the server is down", "-", "1", "-", *away(free_port(), secrets, cwd))]
    rows += [
        (f"SessionStart by {one}, down", "-", *start(one, free_port(), secrets, tmp_path, times)) for one in CLIENTS
    ]
    with socket.create_server(("127.0.0.1", 0)) as slow:
        port = slow.getsockname()[1]
        rows += [("the server does not answer", "-", "1", "-", *away(port, secrets, cwd, times=1))]
        rows += [(f"SessionStart by {one}, no answer", "-", *start(one, port, secrets, tmp_path, 2)) for one in CLIENTS]
    order = [*CALLS, BESIDE]
    rows.sort(key=lambda row: [*order, row[0]].index(row[0]))
    columns = ("hook", "memories", "at once", "processor ms", "median ms", "p95 ms")
    report("ANSWERING HOOKS over HTTP, the web server as `up` starts it (aim: p95 under 30 ms)", columns, rows)


def measured(
    port: int, secrets: list[str], event: str, fields: dict[str, Any], cwd: str, at_once: int, runs: int
) -> Series:
    """Time `runs` calls of each of so many callers; a first call of each, which connects, is not counted."""
    series = Series()

    def calls() -> None:
        cli = Cli(port, secrets)
        cli.call(event, fields, cwd)
        for _ in range(runs):
            series.time(cli.call, event, fields, cwd)
            time.sleep(0.01 * at_once)  # a session does something between its calls

    threads = [threading.Thread(target=calls) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(series.seconds) == runs * at_once
    return series


def start(client: str, port: int, secrets: list[str], folder: Path, times: int) -> tuple[str, str, str, str]:
    """Time the command that the CLI runs when a session starts, with this client alone on its PATH."""
    programs = folder / client
    programs.mkdir(exist_ok=True)
    if not (programs / client).exists():
        (programs / client).symlink_to(str(shutil.which(client)))
    url = f"http://127.0.0.1:{port}/hooks/SessionStart"
    script = start_command.command("observe", url=url, token="$OPS_TOKEN")
    series = Series()
    for number in range(times):
        given = {"session_id": f"{client}-{port}-{number}", "cwd": str(folder / "part-0"), "source": "startup"}
        environment = {"PATH": str(programs), "OPS_TOKEN": secrets[number % len(secrets)]}
        series.time(run, script, given, environment)
    return "1", "-", ms(series.median), ms(series.p95)


def run(script: str, given: dict[str, Any], environment: dict[str, str]) -> None:
    data = json.dumps(given).encode()
    subprocess.run(["/bin/sh", "-c", script], input=data, env=environment, stdout=subprocess.DEVNULL, check=True)


def away(port: int, secrets: list[str], cwd: str, times: int = 20) -> tuple[str, str]:
    """Time calls that fail; the CLI goes on after them."""
    series = Series()
    for _ in range(times):
        series.time(fails, Cli(port, secrets), cwd)
    return ms(series.median), ms(series.p95)


def fails(cli: Cli, cwd: str) -> None:
    with pytest.raises((OSError, HTTPException)):
        cli.call("SessionEnd", {}, cwd)
