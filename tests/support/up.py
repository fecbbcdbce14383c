"""`manage.py up` as real processes in a folder of its own: for tests of `up`, and of what only a whole house does."""

from __future__ import annotations

import http.cookiejar
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from claudeops.env import BASE_DIR

# Two start-ups of Django a process, several processes, and perhaps a busy machine.
PATIENCE = 90.0


def until(found, what, patience=PATIENCE):
    """Waits until `found()` is true, and returns it."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {patience:g} s for {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Up:
    """One `manage.py up`, with what it says in a file."""

    def __init__(self, folder, *arguments, **environment):
        self.folder, self.port = folder, free_port()
        self.output = folder.parent / f"output-{self.port}.txt"
        env = {name: os.environ[name] for name in ("PATH", "LANG", "HOME", "VIRTUAL_ENV") if name in os.environ}
        env |= {"CLAUDEOPS_DATA_DIR": str(folder), "CLAUDEOPS_REPLAY_SPEED": "0"}
        env |= {"CLAUDEOPS_EMBEDDINGS": "off", **environment}  # nothing is downloaded
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, f"{BASE_DIR}/manage.py", "up", "--port", str(self.port), *arguments],
                env=env,
                cwd=folder.parent,  # not the checkout: it must not matter where it is called from
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self):
        return self.output.read_text()

    def stands(self):
        def ready():
            assert self.process.poll() is None, self.said
            return "Ctrl-C stops everything." in self.said

        until(ready, "the welcome")
        return self

    def ctrl_c(self):
        """As a terminal does: to the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE)

    def left_behind(self):
        """Processes of this house, wherever they hang in the tree."""
        found = []
        for process in psutil.process_iter():
            try:
                where = process.environ().get("CLAUDEOPS_DATA_DIR", "")
                alive = process.status() != psutil.STATUS_ZOMBIE
            except psutil.Error:
                continue
            if alive and Path(where).is_relative_to(self.folder) and process.pid != os.getpid():
                found.append(process)
        return found

    def rows(self, sql, database="claudeops.sqlite3"):
        try:
            with closing(sqlite3.connect(f"file:{self.folder / database}?mode=ro", uri=True, timeout=20)) as connection:
                return connection.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []

    def sign_in(self, user, password):
        """(the browser, the page it sees after signing in)"""
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        base = f"http://127.0.0.1:{self.port}"
        form = browser.open(base + "/", timeout=PATIENCE).read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)[1]
        fields = {"csrfmiddlewaretoken": token, "username": user, "password": password, "next": "/"}
        page = browser.open(base + "/login", urllib.parse.urlencode(fields).encode(), timeout=PATIENCE)
        return browser, page.geturl(), page.read().decode()


@contextmanager
def houses(folder: Path) -> Iterator[Callable[..., Up]]:
    """Starts houses with the data folder `folder`/data, and leaves none behind whatever happens."""
    started = []

    def begin(*arguments, **environment):
        started.append(Up(folder / "data", *arguments, **environment))
        return started[-1]

    (folder / "data").mkdir()
    try:
        yield begin
    finally:
        for up in started:
            if up.process.poll() is None:
                up.process.terminate()
                try:
                    up.process.wait(30)
                except subprocess.TimeoutExpired:
                    pass
            for process in up.left_behind():
                process.kill()
            up.process.wait(30)
