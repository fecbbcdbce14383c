from typing import Any

from django.db import migrations, models
from django.db.models import Q

IN_CONFLICT = Q(text__contains="<<<<<<<") | Q(text__contains=">>>>>>>")


def read_anew(apps: Any, schema_editor: Any) -> None:
    """Have files read again that an earlier version took as they were, with both sides of a conflict."""
    apps.get_model("memories", "AgentFile").objects.filter(IN_CONFLICT).update(seen_change=None)
    apps.get_model("memories", "MemoryFile").objects.filter(IN_CONFLICT).update(stamp="")


class Migration(migrations.Migration):
    dependencies = [("memories", "0004_matching")]

    operations = [
        migrations.AlterField(
            model_name="agentfile",
            name="state",
            field=models.CharField(
                choices=[
                    ("new", "not written yet"),
                    ("ok", "in sync"),
                    ("full", "larger than its limits"),
                    ("unreadable", "cannot be read"),
                    ("conflict", "in a merge conflict"),
                    ("deleted", "deleted in git"),
                    ("unwritable", "cannot be written"),
                    ("no_repository", "its repository is missing"),
                ],
                default="new",
                max_length=16,
            ),
        ),
        migrations.RunPython(read_anew, migrations.RunPython.noop),
    ]
