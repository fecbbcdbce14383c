"""The migrations as they stand."""

import pytest
from django.core.management import call_command
from django.db import connection


@pytest.mark.django_db
def test_the_tables_have_the_names_their_users_know():
    tables = set(connection.introspection.table_names())
    assert {
        "agents",
        "sessions",
        "events",
        "cooldown_actions",
        "memories",
        "memory_changes",
        "injection_receipts",
        "session_log_entries",
    } <= tables


@pytest.mark.django_db
def test_no_model_has_changed_without_a_migration():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
def test_migrating_again_changes_nothing(capsys):
    call_command("migrate", verbosity=1)
    assert "No migrations to apply" in capsys.readouterr().out
