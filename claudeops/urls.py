"""All URL patterns. The dashboard's have no trailing slash; each app has its own."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from claudeops import api, apidocs, health, views
from claudeops.apps import find_admin_pages
from claudeops.features import jump, metrics
from claudeops.lib.preferences.views import preferences

find_admin_pages()

FORMER = {
    "desk": "inbox",
    "memories/inbox": "inbox",
    "memories/surfacing": "memories/timed",
    "purges": "forget",
    "telemetry": "diagnostics",
    "transcripts": "learning-log",
}
"""The addresses of pages by those that they had before, and are kept for links in notifications and bookmarks."""

handler500 = views.server_error

urlpatterns = [
    path("", views.overview, name="overview"),
    path("overview/charts.json", views.overview_charts, name="overview-charts"),
    path("overview/fragment", views.overview_fragment, name="overview-fragment"),
    path("feed", views.feed_page, name="feed"),
    path("jump", jump.jump, name="jump"),
    path("jump/run/<slug:slug>", jump.run, name="jump-run"),
    path("jump/theme/<slug:theme>", jump.theme, name="jump-theme"),
    path("preferences", preferences, name="preferences"),
    path("demo/hide", views.hide_demo_note, name="demo-note-hide"),
    path("first-day/hide", views.hide_first_day, name="first-day-hide"),
    path("", include("claudeops.lib.list_view.choices")),
    path("", include("claudeops.features.agents.urls")),
    path("", include("claudeops.features.agent_files.urls")),
    path("", include("claudeops.features.projects.urls")),
    path("", include("claudeops.features.purge.urls")),
    path("", include("claudeops.features.trace.urls")),
    path("", include("sessions_app.urls")),
    path("", include("memories.urls")),
    path("login", views.SignIn.as_view(), name="login"),
    path("logout", login_not_required(auth_views.LogoutView.as_view()), name="logout"),  # also for non-staff
    path("healthz", health.healthz, name="healthz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("readyz", health.readyz, name="readyz"),
    path("api/docs", apidocs.page, name="api-docs"),
    path("api/openapi.json", apidocs.document, name="api-document"),
    path("api/", include((api.routes(), "api"))),
    re_path(r"^api(?:/(?P<rest>(?s:.*)))?\Z", api.in_json(api.anything_else)),
    path("admin/", admin.site.urls),
    *(
        re_path(rf"^{old}(?P<rest>(?:/.*)?)$", RedirectView.as_view(url=f"/{new}%(rest)s", query_string=True))
        for old, new in FORMER.items()
    ),
]
