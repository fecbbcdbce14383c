"""What a person wrote or approved before is confirmed. The indexes of injection and of the queue know confirmation."""

from django.db import migrations, models
from django.db.models import F


def confirm(apps, schema_editor):
    rows = apps.get_model("memories", "Memory").objects.filter(confirmed_at=None, verdict="allow").order_by()
    rows.filter(approved_at__isnull=False).update(confirmed_at=F("approved_at"))
    rows.filter(source="human").update(confirmed_at=F("created_at"))


class Migration(migrations.Migration):
    dependencies = [("memories", "0065_trust")]

    operations = [
        migrations.RunPython(confirm, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="memory", name="memories_injection"),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                condition=models.Q(("active", True), ("verdict", "allow")),
                fields=[
                    *("taxonomy", "-confidence", "id", "project", "active", "verdict"),
                    *("provisional", "confirmed_at"),
                ],
                name="memories_injection",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                condition=models.Q(
                    ("active", True),
                    ("confirmed_at", None),
                    ("verdict", "allow"),
                    models.Q(("provisional", ""), _negated=True),
                ),
                fields=["-updated_at", "-id", "active", "verdict", "provisional", "confirmed_at"],
                name="memories_unconfirmed",
            ),
        ),
    ]
