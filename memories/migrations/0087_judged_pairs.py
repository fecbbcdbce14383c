"""Hold who asks the judge about a pair, and count what models decide by themselves as the system's changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0086_trust_of_memories"),
    ]

    operations = [
        migrations.AddField(
            model_name="disagreement",
            name="judge_tries",
            field=models.PositiveSmallIntegerField(default=0, help_text="How often it was asked about in vain."),
        ),
        migrations.AddField(
            model_name="disagreement",
            name="judging_until",
            field=models.DateTimeField(blank=True, help_text="Until then a worker asks about it.", null=True),
        ),
        migrations.AlterField(
            model_name="disagreement",
            name="judged",
            field=models.JSONField(blank=True, default=dict, help_text="What it said, and what followed from it."),
        ),
        # A generated column cannot be altered; it is computed anew for all rows.
        migrations.RemoveIndex(model_name="memorychange", name="memory_changes_by_people"),
        migrations.RemoveField(model_name="memorychange", name="by"),
        migrations.AddField(
            model_name="memorychange",
            name="by",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(
                        models.Q(("actor", ""), ("actor", "system"), _connector="OR"), then=models.Value("system")
                    ),
                    models.When(
                        models.Q(
                            ("actor__startswith", "judge:"),
                            ("actor__startswith", "classifier:"),
                            ("actor__startswith", "reflector:"),
                            ("actor__startswith", "triage:"),
                            _connector="OR",
                        ),
                        then=models.Value("system"),
                    ),
                    models.When(
                        models.Q(("actor", "import"), ("actor", "mcp"), _connector="OR"), then=models.Value("sessions")
                    ),
                    models.When(
                        models.Q(("actor__startswith", "agent:"), ("actor__startswith", "session:"), _connector="OR"),
                        then=models.Value("sessions"),
                    ),
                    default=models.Value("people"),
                    output_field=models.CharField(),
                ),
                output_field=models.CharField(
                    choices=[("people", "people"), ("sessions", "sessions"), ("system", "the system")], max_length=10
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="memorychange",
            index=models.Index(
                condition=models.Q(("by", "people")), fields=["by", "-at", "-id"], name="memory_changes_by_people"
            ),
        ),
    ]
