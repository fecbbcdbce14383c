"""Let people acknowledge events. Those older than a day count as seen: nobody can go through them all."""

from datetime import timedelta

from django.db import migrations, models
from django.db.models import Q
from django.utils import timezone


def acknowledge_old(apps, schema_editor):
    now = timezone.now()
    old = apps.get_model("sessions_app", "Event").objects.filter(~Q(level="info"), created_at__lt=now - timedelta(1))
    old.update(acknowledged_at=now, acknowledged_by="upgrade")


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0020_brief_and_followers'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='event',
            options={'ordering': ['-created_at', '-id'], 'permissions': [('acknowledge_event', 'Can acknowledge events')]},
        ),
        migrations.AddField(
            model_name='event',
            name='acknowledged_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='event',
            name='acknowledged_by',
            field=models.CharField(blank=True, default='', max_length=150),
        ),
        migrations.AddField(
            model_name='event',
            name='touched_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(acknowledge_old, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('acknowledged_at', None), models.Q(('level', 'info'), _negated=True)), fields=['-created_at', '-id'], name='events_open'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('acknowledged_at', None), models.Q(('level', 'info'), _negated=True)), fields=['level', 'acknowledged_at', '-created_at', '-id'], name='events_open_of_level'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('touched_at__isnull', False)), fields=['touched_at'], name='events_touched'),
        ),
    ]
