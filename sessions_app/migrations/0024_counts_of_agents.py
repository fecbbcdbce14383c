"""Add the counts of sessions by agent. Their triggers are made, and the counts filled, after each `migrate`."""

from django.db import migrations, models

from claudeops.lib import hour_counts


def drop_triggers(apps, schema_editor):
    hour_counts.drop("agent_counts", "sessions", schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0023_alert_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='AgentCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('number', models.BigIntegerField(default=0)),
                ('name', models.CharField(max_length=40)),
                ('paid_micros', models.BigIntegerField(default=0)),
                ('paid_turns', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'agent_counts',
                'indexes': [models.Index(fields=['name', 'hour'], name='agent_counts_of_name')],
                'constraints': [models.UniqueConstraint(fields=('hour', 'name'), name='agentcount_of_hour')],
            },
        ),
        migrations.RunPython(migrations.RunPython.noop, drop_triggers),
    ]
