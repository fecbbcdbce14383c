"""Drop the table that a worker copied vectors to for pgvector, with its triggers: `memories.recall.pgvector` keeps
another one by a trigger of its own."""

from django.db import migrations

FUNCTIONS = (
    "embedding_vectors_added",
    "embedding_vectors_changed",
    "embedding_vectors_removed",
    "embedding_vectors_emptied",
)


def drop_copies(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name in FUNCTIONS:
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}() CASCADE")
        schema_editor.execute("DROP TABLE IF EXISTS embedding_vectors, embedding_vectors_due")


class Migration(migrations.Migration):
    dependencies = [("memories", "0056_unused_indexes")]

    operations = [migrations.RunPython(drop_copies, migrations.RunPython.noop, elidable=True)]
