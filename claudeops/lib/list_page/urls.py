"""URL patterns of what all lists share."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.lib.list_page import views

urlpatterns: list[URLPattern] = [
    path("lists/<slug:page>/columns", views.columns, name="list-columns"),
    path("lists/<slug:page>/views", views.views, name="list-views"),
    path("lists/<slug:page>/views/<int:pk>", views.view, name="list-view"),
]
