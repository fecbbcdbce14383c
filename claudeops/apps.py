"""App configurations: the project itself (its checks and commands) and the admin site it wears."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ClaudeopsConfig(AppConfig):
    name = "claudeops"

    def ready(self) -> None:
        from claudeops import checks  # noqa: F401  (registers the system checks)


class ClaudeopsAdminConfig(AdminConfig):
    default_site = "claudeops.admin_site.ClaudeopsAdminSite"
