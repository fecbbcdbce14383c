"""The app of sessions: runs of agents, their queue and schedules."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from sessions_app import checks  # noqa: F401  (registers the system checks)
