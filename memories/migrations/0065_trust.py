"""What a session had read before it said a memory, and whether the memory needs a confirmation. Columns alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0064_dots_in_service_names'),
    ]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='confirmed_at',
            field=models.DateTimeField(blank=True, help_text='When a person or an independent session confirmed it.', null=True),
        ),
        migrations.AddField(
            model_name='memory',
            name='exposed_to',
            field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='The outside sources, by name.'),
        ),
        migrations.AddField(
            model_name='memory',
            name='exposure',
            field=models.CharField(choices=[('nothing', 'nothing from outside'), ('house', 'its own machines'), ('outside', 'outside text')], db_default='nothing', default='nothing', help_text='What its session had read before it said this.', max_length=8),
        ),
        migrations.AddField(
            model_name='memory',
            name='provisional',
            field=models.CharField(blank=True, db_default='', default='', help_text='Why it needs a confirmation before it is injected; empty = it needs none.', max_length=200),
        ),
    ]
