"""URL patterns of the agents' pages."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.features.agents import views

urlpatterns: list[URLPattern] = [
    path("agents/<slug:slug>", views.agent, name="agent"),
]
