"""App configurations: the project itself (its checks and commands) and the admin site it wears."""

from django.apps import AppConfig, apps
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class ClaudeopsConfig(AppConfig):
    name = "claudeops"

    def ready(self) -> None:
        from claudeops import checks, roles  # noqa: F401  (registers the system checks)

        last = apps.get_app_config("django_q")  # after sessions_app, memories and auth, in INSTALLED_APPS
        post_migrate.connect(roles.after_migrating, sender=last, dispatch_uid="claudeops.roles")


class ClaudeopsAdminConfig(AdminConfig):
    default_site = "claudeops.admin_site.ClaudeopsAdminSite"

    def ready(self) -> None:
        super().ready()
        from django_q.admin import resubmit_task

        # As it comes, whoever may look at a task may run it again.
        resubmit_task.allowed_permissions = ("change",)
