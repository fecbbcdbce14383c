"""The key of `memory_terms` becomes the row's number on SQLite: a recall reads hundreds of these rows by it, and
looked each up in an index first. The index of terms (FTS5) goes by the same numbers and stays as it is."""

from django.db import migrations, models

TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%memory_terms%'"


def numbered(apps, schema_editor):
    change(apps, schema_editor, models.BigIntegerField, models.BigAutoField)


def as_before(apps, schema_editor):
    change(apps, schema_editor, models.BigAutoField, models.BigIntegerField)


def change(apps, schema_editor, old, new):
    fields = [kind(primary_key=True) for kind in (old, new)]
    model = apps.get_model("memories", "MemoryTerms")
    for field in fields:
        field.set_attributes_from_name("memory_id")
        field.model = model
    triggers = []
    if schema_editor.connection.vendor == "sqlite":
        # It renames no table while a trigger speaks of it, and drops a table's triggers with it. On a new database
        # there are none yet.
        with schema_editor.connection.cursor() as cursor:
            triggers = cursor.execute(TRIGGERS).fetchall()
    for name, _ in triggers:
        schema_editor.execute(f"DROP TRIGGER {name}")
    schema_editor.alter_field(model, *fields)
    for _, sql in triggers:
        schema_editor.execute(sql)


class Migration(migrations.Migration):
    dependencies = [("memories", "0054_scope_of_a_project")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("memoryterms", "memory_id", models.BigAutoField(primary_key=True, serialize=False))
            ],
            database_operations=[migrations.RunPython(numbered, as_before)],
        )
    ]
