"""The app of personal preferences."""

from django.apps import AppConfig


class PreferencesConfig(AppConfig):
    name = "claudeops.lib.preferences"
    default_auto_field = "django.db.models.BigAutoField"
