"""The migrations as they stand."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from claudeops.features import doctor
from claudeops.lib import database_version
from claudeops.lib.cli import Refusal
from claudeops.workers.up import up
from tests.support.up import free_port


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


class TestADatabaseOfAnEarlierVersion:
    """Its migrations are not those of this version, and it must neither be changed nor fail in the middle."""

    @pytest.fixture(autouse=True)
    def earlier(self, db):
        MigrationRecorder(connection).record_applied(*database_version.EARLIEST)

    def test_it_is_not_migrated_and_the_way_is_said(self):
        with pytest.raises(SystemCheckError, match=r"claudeops\.E004") as refusal:
            call_command("migrate", skip_checks=False, verbosity=0)
        assert database_version.EARLIER in str(refusal.value)
        assert "manage.py memory export" in str(refusal.value)

    def test_up_a_worker_and_doctor_say_the_same(self, client, tmp_path, settings):
        settings.CLAUDEOPS_DATA_DIR = tmp_path
        with pytest.raises(Refusal) as refusal:
            up("127.0.0.1", free_port(), demo=False)
        assert (refusal.value.message, refusal.value.fix) == (database_version.EARLIER, database_version.EXPORT)
        with pytest.raises(CommandError, match="made by an earlier version"):
            call_command("runworker")
        finding = next(finding for finding in doctor.examine().findings if finding.subject == "database")
        assert (finding.level, finding.hint) == (doctor.ERROR, database_version.EXPORT)

    def test_it_is_not_ready(self, client):
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["reason"].startswith(database_version.EARLIER)
