"""Name the agents of memories in the agent taxonomy by the one rule of ids, as their files do."""

import re

from django.db import migrations


def agent_id(name):
    """The rule at this time."""
    last = re.split(r"[/\\:]", name.strip().rstrip("/\\:"))[-1].lower()
    plain = re.sub(r"[^a-z0-9_]+", "", re.sub(r"[\s_-]+", "_", last).removesuffix(".md")).strip("_")
    return (re.sub(r"_*agent\Z", "", plain).strip("_") or plain)[:64].strip("_")


def normalise(apps, schema_editor):
    rows = apps.get_model("memories", "Memory").objects.filter(taxonomy="agent", agent__isnull=False)
    for name in list(rows.order_by().values_list("agent", flat=True).distinct()):
        wanted = agent_id(name)
        if wanted and wanted != name:
            rows.filter(agent=name).update(agent=wanted)


class Migration(migrations.Migration):
    dependencies = [("memories", "0080_agent_files")]

    operations = [migrations.RunPython(normalise, migrations.RunPython.noop)]
