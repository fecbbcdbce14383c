"""Add the counts of sessions and events by hour. Their triggers are made, and the counts filled, after each `migrate`."""

from django.db import migrations, models

from claudeops.lib import hour_counts

TABLES = {"session_counts": "sessions", "event_counts": "events"}


def drop_triggers(apps, schema_editor):
    for counts, source in TABLES.items():
        hour_counts.drop(counts, source, schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0012_stored_costs'),
    ]

    operations = [
        migrations.CreateModel(
            name='EventCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('name', models.CharField(max_length=20)),
                ('number', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'event_counts',
                'constraints': [models.UniqueConstraint(fields=('hour', 'name'), name='eventcount_of_hour')],
            },
        ),
        migrations.CreateModel(
            name='SessionCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('name', models.CharField(max_length=20)),
                ('number', models.BigIntegerField(default=0)),
                ('paid_micros', models.BigIntegerField(default=0)),
                ('paid_turns', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'session_counts',
                'constraints': [models.UniqueConstraint(fields=('hour', 'name'), name='sessioncount_of_hour')],
            },
        ),
        migrations.RunPython(migrations.RunPython.noop, drop_triggers),
    ]
