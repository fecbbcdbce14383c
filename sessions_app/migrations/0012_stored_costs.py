"""Costs that no session can have become zero and are counted as dropped fields: pages that list them failed."""

from django.db import migrations
from django.db.models import Q

MOST_DOLLARS = "99999.999999"


def drop_wrong_costs(apps, schema_editor):
    sessions = apps.get_model("sessions_app", "Session").objects.using(schema_editor.connection.alias)
    wrong = sessions.filter(Q(cost_usd__gt=MOST_DOLLARS) | Q(cost_usd__lt=0))
    for pk, stats in list(wrong.values_list("pk", "stats")):
        stats = stats if isinstance(stats, dict) else {}
        sessions.filter(pk=pk).update(cost_usd=0, stats={**stats, "bad_fields": stats.get("bad_fields", 0) + 1})


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0011_reserved_budget'),
    ]

    operations = [
        migrations.RunPython(drop_wrong_costs, migrations.RunPython.noop),
    ]
