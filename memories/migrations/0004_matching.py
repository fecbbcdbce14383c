"""Index all memories anew: words of texts without blanks are pairs of neighbours now (`recall/query.py`)."""

from django.db import migrations

QUEUE = "INSERT INTO memory_terms_due (memory_id) SELECT id FROM memories WHERE true ON CONFLICT DO NOTHING"
"""A worker indexes what is queued."""


class Migration(migrations.Migration):
    dependencies = [("memories", "0003_forgotten_texts")]

    operations = [migrations.RunSQL(QUEUE, migrations.RunSQL.noop)]
