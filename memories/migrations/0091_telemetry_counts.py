"""Add the counts of telemetry records by hour. Their triggers are made, and the counts filled, after each `migrate`."""

from django.db import migrations, models

from claudeops.lib import hour_counts


def drop_triggers(apps, schema_editor):
    hour_counts.drop("telemetry_counts", "telemetry_records", schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0090_curating'),
    ]

    operations = [
        migrations.CreateModel(
            name='TelemetryCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('number', models.BigIntegerField(default=0)),
                ('name', models.CharField(max_length=48)),
            ],
            options={
                'db_table': 'telemetry_counts',
                'abstract': False,
            },
        ),
        migrations.AddIndex(
            model_name='telemetryrecord',
            index=models.Index(fields=['source', '-at', '-id'], name='telemetry_source'),
        ),
        migrations.AddIndex(
            model_name='telemetryrecord',
            index=models.Index(condition=models.Q(('success', False)), fields=['-at', '-id'], name='telemetry_failed'),
        ),
        migrations.AddConstraint(
            model_name='telemetrycount',
            constraint=models.UniqueConstraint(fields=('hour', 'name'), name='telemetrycount_of_hour'),
        ),
        migrations.RunPython(migrations.RunPython.noop, drop_triggers),
    ]
