"""An index of the errors in logs, and which of the entries stored before 0014 are errors: their text says so."""

from django.db import migrations, models
from django.db.models import Q


def mark_errors(apps, schema_editor):
    entries = apps.get_model("sessions_app", "LogEntry").objects.using(schema_editor.connection.alias)
    entries.filter(kind="tool_result", is_error=None, text__startswith="Error: ").update(is_error=True)


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0017_lists_by_cost_and_duration'),
    ]

    operations = [
        migrations.RunPython(mark_errors, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='logentry',
            index=models.Index(condition=Q(('is_error', True)), fields=['session', 'seq'], name='session_log_entries_errors'),
        ),
    ]
