"""The admin site: the dashboard's header and its sign-in page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

# The apps, the most used first.
ORDER = ("sessions_app", "memories", "auth", "django_q")


class ClaudeopsAdminSite(admin.AdminSite):
    site_header = "claudeops"
    site_title = "claudeops"
    index_title = "Admin"
    enable_nav_sidebar = False

    @method_decorator(never_cache)
    @login_not_required
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the dashboard's sign-in page."""
        if self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        after = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index", current_app=self.name)
        return redirect_to_login(after, settings.LOGIN_URL)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        places = {label: place for place, label in enumerate(ORDER)}
        return sorted(apps, key=lambda app: places.get(app["app_label"], len(ORDER)))
