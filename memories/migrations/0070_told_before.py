"""Count what sessions were told before there was a count, from the rows of their receipts."""

from django.db import migrations

BATCH = 1_000
"""Memories in one transaction."""

COUNT = """
UPDATE memories SET
    told_count = (SELECT COUNT(*) FROM injected_memories AS told WHERE told.memory_id = memories.id),
    last_told_at = (
        SELECT MAX(receipt.created_at) FROM injected_memories AS told
        JOIN injection_receipts AS receipt ON receipt.session_id = told.session_id
        WHERE told.memory_id = memories.id
    )
WHERE id > %s AND id <= %s
  AND EXISTS (SELECT 1 FROM injected_memories AS told WHERE told.memory_id = memories.id)
"""


def count(apps, schema_editor):
    """Safe to break off and to run again: it counts anew."""
    memories = apps.get_model("memories", "Memory")
    connection = schema_editor.connection
    last = 0
    while True:
        rows = memories.objects.using(connection.alias).filter(pk__gt=last).order_by("pk")
        ids = list(rows.values_list("pk", flat=True)[:BATCH])
        if not ids:
            return
        with connection.cursor() as cursor:
            cursor.execute(COUNT, [last, ids[-1]])
        last = ids[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memories", "0069_told"), ("sessions_app", "0010_injected_memory")]

    operations = [migrations.RunPython(count, migrations.RunPython.noop)]
