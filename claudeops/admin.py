"""The admin of accounts and failed sign-ins. Nobody grants there what they do not have (`roles.may_manage`)."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin  # registers both, which is replaced below
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest

from claudeops import roles

admin.site.unregister(User)
admin.site.unregister(Group)


class WithinOwnRights(admin.ModelAdmin):
    """Change and delete only what has no right beyond those of the signed-in person, and grant no other."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _manages(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _manages(request, obj)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the groups and permissions that the person may grant; others in a request are refused."""
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in ("groups", "permissions", "user_permissions"):
            field.queryset = roles.grantable(request.user, field.queryset)
        return field


@admin.register(User)
class AccountAdmin(WithinOwnRights, UserAdmin):
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, "is_superuser")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Check again what is stored: the form was filled in from a page that may be old."""
        if change and not roles.may_manage(request.user, User.objects.get(pk=obj.pk)):
            raise PermissionDenied
        super().save_model(request, obj, form, change)


@admin.register(Group)
class RoleAdmin(WithinOwnRights, GroupAdmin):
    pass


@admin.register(AccessAttempt)
class FailedSignInAdmin(admin.ModelAdmin):
    """Who failed to sign in; to delete a row lifts its limit."""

    list_display = ("attempt_time", "username", "ip_address", "failures_since_start", "user_agent")
    search_fields = ("username", "ip_address")
    fields = readonly_fields = ("username", "ip_address", "failures_since_start", "attempt_time", "user_agent")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _manages(request: HttpRequest, obj: Model | None) -> bool:
    return obj is None or roles.may_manage(request.user, obj)
