"""Contradictions found before there was an inbox: one question a pair, from the change rows."""

from django.db import migrations

BATCH = 500


def put_before_the_operator(apps, schema_editor):
    changes = apps.get_model("memories", "MemoryChange").objects
    memories_then = apps.get_model("memories", "Memory").objects
    Disagreement = apps.get_model("memories", "Disagreement")  # noqa: N806  (a model)
    rows = changes.filter(kind="contradicted", memory__isnull=False).order_by("pk")
    last = 0
    while batch := list(rows.filter(pk__gt=last).values("pk", "memory_id", "at", "evidence")[:BATCH]):
        last = batch[-1]["pk"]
        pairs = {}
        for row in batch:
            by = (row["evidence"] or {}).get("by")
            if isinstance(by, int) and by != row["memory_id"]:
                pairs.setdefault((row["memory_id"], by), row)
        ids = {pk for pair in pairs for pk in pair}
        memories = memories_then.exclude(inactive_reason__in=("merged", "superseded", "expired")).in_bulk(ids)
        known = {
            frozenset(pair)
            for pair in Disagreement.objects.filter(older_id__in=ids, newer_id__in=ids).values_list("older_id", "newer_id")
        }
        found = []
        for (older_pk, newer_pk), row in pairs.items():
            older, newer = memories.get(older_pk), memories.get(newer_pk)
            if older is None or newer is None or frozenset((older_pk, newer_pk)) in known:
                continue
            known.add(frozenset((older_pk, newer_pk)))
            found.append(
                Disagreement(
                    older_id=older_pk,
                    newer_id=newer_pk,
                    kind="contradiction",
                    created_at=row["at"],
                    evidence=(row["evidence"] or {}).get("match") or {},
                    older_text=older.observation,
                    newer_text=newer.observation,
                    service=newer.service or "",
                    category=newer.category,
                )
            )
        Disagreement.objects.bulk_create(found, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [("memories", "0050_disagreements")]

    operations = [migrations.RunPython(put_before_the_operator, migrations.RunPython.noop)]
