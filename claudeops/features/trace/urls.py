"""URL pattern of the page of a trace."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.features.trace import views

urlpatterns: list[URLPattern] = [path("trace", views.trace, name="trace")]
