
from django.conf import settings
from django.db import migrations, models

from memories.injection import tag_index


def drop_triggers(apps, schema_editor):
    tag_index.drop(schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0077_project_ends_next'),
        ('sessions_app', '0021_open_events'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # The triggers are made, and the table is filled, after each `migrate`.
        migrations.RunPython(migrations.RunPython.noop, drop_triggers),
        migrations.CreateModel(
            name='ProjectTag',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('memory_id', models.PositiveBigIntegerField()),
                ('project_id', models.PositiveBigIntegerField()),
                ('kind', models.PositiveSmallIntegerField()),
                ('tag', models.CharField(max_length=200)),
            ],
            options={
                'db_table': 'project_tags',
            },
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(models.OrderBy(models.F('project')), models.OrderBy(models.Func(models.F('confidence'), models.Func(models.F('relevance_score'), template='COALESCE(%(expressions)s, 0.5)'), arg_joiner=' * ', output_field=models.FloatField(), template='(%(expressions)s)'), descending=True), models.OrderBy(models.F('created_at')), models.OrderBy(models.F('id')), models.F('taxonomy'), models.F('active'), models.F('verdict'), models.F('confidence'), models.F('expires_at'), models.F('provisional'), models.F('confirmed_at'), condition=models.Q(('active', True), ('confidence__gte', 0.3), ('taxonomy', 'project'), ('verdict', 'allow')), name='memories_project_rank'),
        ),
        migrations.AddIndex(
            model_name='projecttag',
            index=models.Index(fields=['project_id', 'kind', 'tag', 'memory_id'], name='project_tags_by_tag'),
        ),
        migrations.AddIndex(
            model_name='projecttag',
            index=models.Index(fields=['memory_id'], name='project_tags_memory'),
        ),
    ]
