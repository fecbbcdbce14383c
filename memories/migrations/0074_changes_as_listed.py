"""Compute in the database under which kind a change is listed and who made it, for the list of changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0073_project_selection"),
        ("sessions_app", "0018_errors_of_logs"),
    ]

    operations = [
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
        migrations.AddField(
            model_name="memorychange",
            name="listed_as",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(kind="created", then=models.Value("learned")),
                    models.When(
                        models.Q(("kind", "reinforced"), ("kind", "backed"), _connector="OR"),
                        then=models.Value("confirmed"),
                    ),
                    models.When(
                        models.Q(
                            ("kind", "expired"),
                            models.Q(("after__active", False), ("kind", "decayed")),
                            _connector="OR",
                        ),
                        then=models.Value("faded"),
                    ),
                    default=models.F("kind"),
                    output_field=models.CharField(),
                ),
                output_field=models.CharField(
                    choices=[
                        ("learned", "learned"),
                        ("confirmed", "confirmed"),
                        ("contradicted", "contradicted"),
                        ("faded", "faded or expired"),
                        ("decayed", "lowered by time"),
                        ("edited", "edited"),
                        ("confidence_set", "confidence set"),
                        ("deactivated", "deactivated"),
                        ("reactivated", "reactivated"),
                        ("persistent_set", "persistence set"),
                        ("approved", "approved"),
                        ("merged", "merged"),
                        ("superseded", "superseded"),
                        ("restored", "restored"),
                        ("deleted", "deleted"),
                    ],
                    max_length=20,
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="memorychange",
            index=models.Index(fields=["listed_as", "-at", "-id"], name="memory_changes_listed"),
        ),
        migrations.AddIndex(
            model_name="memorychange",
            index=models.Index(
                condition=models.Q(("by", "people")), fields=["by", "-at", "-id"], name="memory_changes_by_people"
            ),
        ),
    ]
