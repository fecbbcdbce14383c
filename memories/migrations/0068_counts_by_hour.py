"""Add the counts of memory changes by hour. Their triggers are made, and the counts filled, after each `migrate`."""

from django.db import migrations, models

from claudeops.lib import hour_counts

TABLES = {"memory_change_counts": "memory_changes"}


def drop_triggers(apps, schema_editor):
    for counts, source in TABLES.items():
        hour_counts.drop(counts, source, schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0067_memories_by_fading'),
    ]

    operations = [
        migrations.CreateModel(
            name='MemoryChangeCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('name', models.CharField(max_length=20)),
                ('number', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'memory_change_counts',
                'constraints': [models.UniqueConstraint(fields=('hour', 'name'), name='memorychangecount_of_hour')],
            },
        ),
        migrations.RunPython(migrations.RunPython.noop, drop_triggers),
    ]
