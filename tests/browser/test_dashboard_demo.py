"""The dashboard of a real demo, as `up --demo` starts it: real workers, the player, the web server, a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.browser.conftest import Window
from tests.support.up import Up, houses, until

pytestmark = pytest.mark.browser

DATABASE = "demo/claudeops.sqlite3"
PATIENCE = 90_000
MEND = "homelab-mend"  # by itself it runs only after several escalations


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A demo that plays eight times as fast as it was recorded."""
    with houses(tmp_path_factory.mktemp("house")) as start:
        yield start("--demo", CLAUDEOPS_REPLAY_SPEED="8").stands()


@pytest.fixture
def one(chromium: Any, demo: Up) -> Iterator[Window]:
    """A window in which the operator has signed in with what `up` said."""
    window = Window(chromium, f"http://127.0.0.1:{demo.port}", often=False, viewport={"width": 1440, "height": 900})
    window.page.set_default_timeout(PATIENCE)
    found = re.search(r"user (\S+), password (\S+)", demo.said)
    assert found, demo.said
    window.sign_in(found[1], found[2])
    yield window
    complaints = window.complaints
    window.context.close()
    assert complaints == []


def ids(demo: Up) -> set[int]:
    return {pk for (pk,) in demo.rows("SELECT id FROM memories", DATABASE)}


def run_now(one: Window, agent: str) -> int:
    """Run an agent from the sessions' page, in a tab of its own; the session's id."""
    page = one.context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto("/sessions")
    page.click("#run > summary")
    page.select_option("#run select[name=agent]", agent)
    page.click("#run .button-main")
    address = page.get_attribute("#toasts a", "href")
    page.close()
    return int(address.rpartition("/")[2])


def test_what_a_running_session_records_appears_within_five_seconds_while_another_row_is_edited(one, demo):
    page = one.open("/memories")
    page.wait_for_selector("tr[data-row]")  # the page was open and empty, or the first session was faster
    edited = page.get_attribute("tr[data-row]", "data-row")
    page.click(f"#memory-{edited}-more > summary")
    page.click(f"#memory-{edited}-edit")
    page.wait_for_selector(f"#memory-{edited}-observation")
    page.fill(f"#memory-{edited}-observation", "Half a sentence")
    known = ids(demo)
    session = run_now(one, MEND)

    def recorded() -> list[tuple[int, str]]:
        rows = demo.rows(f"SELECT id, observation FROM memories WHERE session_id = {session} ORDER BY id", DATABASE)
        return [row for row in rows if row[0] not in known]

    ((new, text), *_) = until(recorded, f"a memory of session {session}")
    page.wait_for_selector("#memories-held >> text=new", timeout=5000)  # it waits beside the open edit
    page.click("#memories-held-show")
    page.wait_for_selector(f"#memory-{new}", timeout=5000)
    assert page.text_content(f"#memory-{new}-link") == text
    assert page.get_attribute(f"#memory-{new}-session", "href") == f"/sessions/{session}"
    assert page.input_value(f"#memory-{edited}-observation") == "Half a sentence"
    page.click(f"#memory-{edited} [data-cancel]")
    page.wait_for_selector(f"#memory-{edited}-link")


def web_server(demo: Up) -> psutil.Process | None:
    """The web server's first process; None while there is none."""
    for child in psutil.Process(demo.process.pid).children():
        try:
            if "gunicorn" in " ".join(child.cmdline()):
                return child
        except psutil.Error:
            continue
    return None


def kill(process: psutil.Process) -> None:
    """The server and its workers, as a crash takes them."""
    for one in (*process.children(recursive=True), process):
        one.kill()


def lines(page: Any) -> list[int]:
    script = "all => all.map(li => Number(li.id.slice(5)))"
    found: list[int] = page.eval_on_selector_all("#log-lines > li[id^='line-']", script)
    return found


def written(demo: Up, session: int) -> int:
    """Lines in the session's log, as the database has them; 0 while it cannot be read."""
    found = demo.rows(f"SELECT count(*) FROM session_log_entries WHERE session_id = {session}", DATABASE)
    return int(found[0][0]) if found else 0


def test_the_log_of_a_running_session_outlives_its_web_server_with_no_line_lost_or_twice(one, demo):
    session = run_now(one, MEND)
    page = one.open(f"/sessions/{session}")
    page.wait_for_selector("#line-3")
    server = web_server(demo)
    assert server
    (before,) = lines(page)[-1:]
    kill(server)
    page.wait_for_function("() => document.querySelector('#connection').textContent.includes('cannot be reached')")
    until(lambda: written(demo, session) > before, "a line that the page had not shown when its server was killed")
    page.wait_for_function("() => document.querySelector('#connection').textContent === ''")
    assert web_server(demo) != server
    page.wait_for_selector("#log-next[data-ended]", state="attached")
    total = written(demo, session)
    assert lines(page) == list(range(1, total + 1))
    assert total > 10
    page.wait_for_function("() => document.querySelector('#state').textContent === 'completed'")
    assert page.locator("[hx-trigger*=every]").count() == 0  # it has ended by itself
    # What was asked for while there was no server is on the console; that is meant, and nothing else is there.
    assert all("ERR_" in said or ": htmx:" in said for said in one.complaints), one.complaints
    one.complaints.clear()


def test_what_a_run_says_of_its_project_is_approved_on_the_projects_page(one, demo):
    session = run_now(one, "shares-move")

    def recorded() -> list[tuple[int, str]]:
        return demo.rows(
            "SELECT id, observation FROM memories WHERE project_id IS NOT NULL AND taxonomy = 'project' "
            "AND source = 'run' AND approved_at IS NULL ORDER BY id",
            DATABASE,
        )

    ((new, text), *_) = until(recorded, f"a memory of the project, said by session {session} or one before it")
    page = one.open("/projects")
    page.click("text=nas-move")
    assert page.text_content(f"#memory-{new}-link") == text
    page.check(f"#memory-{new}-pick")
    page.click("#bulk [value=approve]")
    approved = f"SELECT id FROM memories WHERE id = {new} AND approved_at IS NOT NULL"
    until(lambda: demo.rows(approved, DATABASE), f"memory {new} approved")
    helped = "SELECT memory_id FROM used_memories WHERE helped ORDER BY id"
    ((best,), *_) = until(lambda: demo.rows(helped, DATABASE), "a memory that helped a session of the project")
    page.reload()
    assert re.search(r"[1-9]\d* of [1-9]\d*", page.text_content(f"#memory-{best} .cell-helped"))
    assert "never" not in page.text_content(f"#memory-{best} .cell-used")
