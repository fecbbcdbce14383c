"""The rows of `injected_memories` for the receipts that were written before there were any."""

from django.db import migrations

BATCH = 500
"""Receipts in one transaction: others must be able to write in between."""

POSTGRESQL = """
INSERT INTO injected_memories (session_id, memory_id)
SELECT DISTINCT receipt.session_id, (told.entry ->> 'id')::bigint
FROM injection_receipts AS receipt
CROSS JOIN LATERAL jsonb_array_elements(
    CASE jsonb_typeof(receipt.included) WHEN 'array' THEN receipt.included ELSE '[]'::jsonb END
) AS told(entry)
WHERE receipt.id > %s AND receipt.id <= %s
  AND CASE WHEN jsonb_typeof(told.entry -> 'id') = 'number' THEN told.entry ->> 'id' ~ '^[0-9]{1,18}$' ELSE false END
ON CONFLICT DO NOTHING
"""

SQLITE = """
INSERT OR IGNORE INTO injected_memories (session_id, memory_id)
SELECT receipt.session_id, json_extract(told.value, '$.id')
FROM injection_receipts AS receipt, json_each(receipt.included) AS told
WHERE receipt.id > %s AND receipt.id <= %s
  AND told.type = 'object' AND json_type(told.value, '$.id') = 'integer' AND json_extract(told.value, '$.id') >= 0
"""


def fill(apps, schema_editor):
    """Safe to break off and to run again: what is there stays."""
    receipts = apps.get_model("sessions_app", "InjectionReceipt")
    connection = schema_editor.connection
    sql = POSTGRESQL if connection.vendor == "postgresql" else SQLITE
    last = 0
    while True:
        ids = list(
            receipts.objects.using(connection.alias).filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:BATCH]
        )
        if not ids:
            return
        with connection.cursor() as cursor:
            cursor.execute(sql, [last, ids[-1]])
        last = ids[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("sessions_app", "0004_injected")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
