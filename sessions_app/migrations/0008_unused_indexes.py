"""Links lose their automatic indexes where another index or a unique constraint begins with the same column.

By hand, because AlterField rebuilds the whole table on SQLite: minutes for a million events."""

import django.db.models.deletion
from django.db import migrations, models

LINKS = [
    ("cooldownaction", "session"),
    ("event", "session"),
    ("servicecheck", "session"),
    ("session", "agent"),
    ("session", "parent"),
    ("session", "project"),
]


def drop(apps, schema_editor):
    for model, field in links(apps):
        names = schema_editor._constraint_names(model, [field.column], index=True, unique=False)
        for name in names:
            if name.startswith(f"{model._meta.db_table}_{field.column}_"):
                schema_editor.execute(schema_editor._delete_index_sql(model, name))


def create(apps, schema_editor):
    for model, field in links(apps):
        schema_editor.execute(schema_editor._create_index_sql(model, fields=[field]))


def links(apps):
    for name, field in LINKS:
        model = apps.get_model("sessions_app", name)
        yield model, model._meta.get_field(field)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0056_unused_indexes'),
        ('sessions_app', '0007_lists_by_two'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='workerheartbeat',
            name='worker_heartbeats_beat',
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop, create)],
            state_operations=[
                migrations.AlterField(
                    model_name='cooldownaction',
                    name='session',
                    field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='cooldown_actions', to='sessions_app.session'),
                ),
                migrations.AlterField(
                    model_name='event',
                    name='session',
                    field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='sessions_app.session'),
                ),
                migrations.AlterField(
                    model_name='servicecheck',
                    name='session',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='service_checks', to='sessions_app.session'),
                ),
                migrations.AlterField(
                    model_name='session',
                    name='agent',
                    field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='sessions', to='sessions_app.agent'),
                ),
                migrations.AlterField(
                    model_name='session',
                    name='parent',
                    field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='sessions_app.session'),
                ),
                migrations.AlterField(
                    model_name='session',
                    name='project',
                    field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='sessions', to='memories.project'),
                ),
            ],
        ),
    ]
