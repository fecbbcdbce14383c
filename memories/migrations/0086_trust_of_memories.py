"""Store for each memory how far it can be trusted, by its source and what its session had read."""

from django.db import migrations
from django.db.models import Case, Value, When


def fill(apps, schema_editor):
    rows = apps.get_model("memories", "Memory").objects
    rows.update(
        trust=Case(
            When(source="import", exposed_to=["import"], then=Value("imported")),
            When(source="import", exposed_to=["memory pack"], then=Value("imported")),
            When(exposure="outside", then=Value("external")),
            When(source="human", then=Value("operator")),
            When(source="import", then=Value("imported")),
            default=Value("session"),
        )
    )


class Migration(migrations.Migration):
    dependencies = [("memories", "0085_observing")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
