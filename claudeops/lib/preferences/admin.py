"""The admin of preferences: read only, for a question such as "why does she see other times?"."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from claudeops.lib.preferences.models import ListChoice, Preference, SavedView


class Own(admin.ModelAdmin):
    """A person's own: nobody adds or changes it here. It can be deleted."""

    list_select_related = ("user",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Preference)
class PreferenceAdmin(Own):
    list_display = ("user", "theme", "time_zone")
    list_filter = ("theme",)
    search_fields = ("user__username",)


@admin.register(SavedView)
class SavedViewAdmin(Own):
    list_display = ("user", "page", "name", "query", "created_at")
    list_filter = ("page",)
    search_fields = ("user__username", "name")
    ordering = ("-pk",)


@admin.register(ListChoice)
class ListChoiceAdmin(Own):
    list_display = ("user", "page", "columns", "size")
    list_filter = ("page",)
    search_fields = ("user__username",)
