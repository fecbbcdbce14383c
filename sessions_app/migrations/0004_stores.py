from django.db import migrations


def keep_times(apps, schema_editor):
    """Put the times of the steps of purges into their receipts."""
    for purge in apps.get_model("sessions_app", "Purge").objects.exclude(state="planned"):
        steps = purge.steps.exclude(done_at=None).order_by("position")
        purge.receipt["steps"] = {step.name: step.done_at.isoformat() for step in steps}
        purge.save(update_fields=["receipt"])


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0003_settings")]

    operations = [
        migrations.RunPython(keep_times, migrations.RunPython.noop),
        migrations.DeleteModel(name="PurgeStep"),
        migrations.RemoveField(model_name="purge", name="claimed_by"),
        migrations.RemoveField(model_name="purge", name="claimed_until"),
    ]
