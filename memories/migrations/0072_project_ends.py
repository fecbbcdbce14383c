"""Store when the memories of projects expire, which was computed from their last confirmation until now."""

from datetime import timedelta

from django.db import migrations
from django.db.models import F

LIFETIMES = {"warning": timedelta(days=90), "learning": timedelta(days=180), "context": timedelta(days=30)}
"""Those of the taxonomy at this time."""


def store_ends(apps, schema_editor):
    rows = apps.get_model("memories", "Memory").objects.filter(taxonomy="project", persistent=False)
    for category, lasts in LIFETIMES.items():
        ageing = rows.filter(category=category)
        ageing.filter(expires_at=None).update(expires_at=F("updated_at") + lasts)
        ageing.filter(expires_at__gt=F("updated_at") + lasts).update(expires_at=F("updated_at") + lasts)


class Migration(migrations.Migration):
    dependencies = [("memories", "0071_project_settings")]

    operations = [migrations.RunPython(store_ends, migrations.RunPython.noop)]
