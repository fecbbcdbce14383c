"""A service's name may hold dots. Only the validator changes, so no statement is sent to the database."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0063_token_highest_tier")]

    operations = [
        migrations.AlterField(
            model_name="memory",
            name="service",
            field=models.CharField(
                blank=True,
                help_text="Empty = general.",
                max_length=64,
                null=True,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[a-zA-Z0-9._-]+\\Z", "A service is one word of letters, digits, dots, hyphens and underscores."
                    )
                ],
            ),
        ),
    ]
