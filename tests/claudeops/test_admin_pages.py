"""The admin's pages: found with the addresses, looked at by `manage.py check`, and not loaded by a process without."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.core import checks
from django_q.admin import resubmit_task

from claudeops.apps import find_admin_pages
from memories.models import Memory

ASKED = """
import sys, django
django.setup()
import memories.recall
print(*sorted(name for name in sys.modules if name in {"memories.admin", "sessions_app.admin", "memories.matching"}))
"""


@pytest.mark.processes
def test_a_process_that_only_recalls_loads_no_page_of_the_admin_and_no_matching():
    done = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


@pytest.mark.processes
def test_a_command_about_memories_checks_its_surroundings_and_loads_no_page(tmp_path):
    asked = """
import sys
from django.core.management import execute_from_command_line
sys.argv = ["manage.py", "memory", "recall", "backup", "--json"]
try:
    execute_from_command_line(sys.argv)
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name in {"memories.admin", "claudeops.urls", "ninja"}))
"""
    surroundings = {
        **os.environ,
        "CLAUDEOPS_DATA_DIR": str(tmp_path),
        "CLAUDEOPS_WORKRES": "2",
        "CLAUDEOPS_EMBEDDINGS": "off",
        "DJANGO_SETTINGS_MODULE": "claudeops.settings",
        "DATABASE_URL": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=settings.BASE_DIR,
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *answer, loaded = done.stdout.splitlines()
    assert loaded == ""
    assert "claudeops.W001" in done.stderr
    refused = json.loads("\n".join(answer))  # nobody has made its tables yet
    assert refused["error"]["code"] == "not_migrated"
    assert refused["fix"] == "Run: manage.py migrate"


def test_the_addresses_find_every_page_and_what_a_task_of_the_queue_asks_for():
    find_admin_pages()
    assert admin.site.is_registered(Memory)
    assert resubmit_task.allowed_permissions == ("change",)


def test_a_fault_in_a_page_is_found_by_the_checks(monkeypatch):
    find_admin_pages()
    monkeypatch.setattr(type(admin.site.get_model_admin(Memory)), "list_display", ("no_such_column",))
    found = [message.id for message in checks.run_checks(app_configs=apps.get_app_configs(), tags=["admin"])]
    assert "admin.E108" in found
