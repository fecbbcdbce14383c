"""Every address. The dashboard's have no trailing slash."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import path

from claudeops import health

urlpatterns = [
    path("login", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout", auth_views.LogoutView.as_view(), name="logout"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
]
