"""A process that has all of a worker imported, and forks for each request: starting Python anew takes seconds.

A request is a line of JSON on stdin, its answer the child's wait status on stdout. The child has the settings that its
environment says, and is killed where the request says.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module, reload
from types import FrameType
from typing import Any

import django
from django.conf import settings
from django.db import connections


def use_settings(environment: dict[str, str]) -> None:
    """Read the settings of this environment, as a process that starts with it does."""
    os.environ.clear()
    os.environ.update(environment)
    reload(import_module("claudeops.env"))
    module = reload(import_module(environment["DJANGO_SETTINGS_MODULE"]))
    for name in filter(str.isupper, dir(module)):
        setattr(settings, name, getattr(module, name))
    connections.__dict__.pop("settings", None)
    connections._settings = None
    for alias in connections.settings:
        connections[alias] = connections.create_connection(alias)


def kill_at(event: str, module: str, function: str, nth: int) -> None:
    left = nth

    def watch(frame: FrameType, at: str, argument: Any) -> None:
        nonlocal left
        if at == event and (frame.f_globals.get("__name__"), frame.f_code.co_name) == (module, function):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)


def run(work: str, environment: dict[str, str], output: str, **place: Any) -> None:
    descriptor = os.open(output, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(descriptor, number)
    use_settings(environment)
    kill_at(**place)
    exec(work, {"__name__": "__main__"})


def main() -> None:
    django.setup()
    for name in ("claudeops.tasks", "memories.tasks", "sessions_app.tasks"):
        import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                run(**json.loads(line))
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
