"""App configurations of the project (checks, commands) and of its admin site."""

from collections.abc import Sequence
from typing import Any

from axes.apps import AppConfig as AxesConfig
from django.apps import AppConfig, apps
from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, post_save

from claudeops.lib.files import keep_private

HAVE_A_HISTORY = ("memory", "proposal", "journalentry", "session", "event")
"""Models of which each change is kept beside its row."""


class ClaudeopsConfig(AppConfig):
    name = "claudeops"

    def ready(self) -> None:
        from claudeops import checks, roles  # noqa: F401  (registers the system checks)

        last = apps.get_app_config("django_q")  # after sessions_app, memories and auth, in INSTALLED_APPS
        post_migrate.connect(roles.after_migrating, sender=last, dispatch_uid="claudeops.roles")
        post_save.connect(_log_change, sender="admin.LogEntry", dispatch_uid="claudeops.journal")
        connection_created.connect(keep_private, dispatch_uid="claudeops.file_rights")


def _log_change(instance: Any, created: bool, **kwargs: Any) -> None:
    """Write into the journal what a person set in the admin. What memories, entries and records say has its history."""
    from memories.library import journal

    model = instance.content_type.model if instance.content_type else ""
    if created and not kwargs.get("raw") and model not in HAVE_A_HISTORY:
        what = f"{instance.object_repr}: {instance.get_change_message() or instance.get_action_flag_display()}"
        journal.note("change", model.replace("_", "-") or "setting", what[:1_000], by=instance.user.get_username())


class SignInLimitsConfig(AxesConfig):
    """django-axes, under a name that says what it does."""

    verbose_name = "Sign-in limits"


class ClaudeopsAdminConfig(SimpleAdminConfig):
    """Load the admin's pages with the URL patterns, so that a process without URLs starts sooner."""

    default_site = "claudeops.admin_site.ClaudeopsAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_admin, checks.Tags.admin)  # Django's own check would find no registered pages


def find_admin_pages() -> None:
    """Import every app's `admin` module, which registers its pages. Idempotent."""
    admin.autodiscover()
    from django_q.admin import resubmit_task

    # By default everyone who may view a task may run it again.
    resubmit_task.allowed_permissions = ("change",)


def _check_admin(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    find_admin_pages()
    return list(check_admin_app(app_configs, **kwargs))
