"""URL patterns of the pages of purges."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.features.purge import views

urlpatterns: list[URLPattern] = [
    path("forget", views.purges, name="purges"),
    path("forget/<int:pk>", views.purge, name="purge"),
    path("forget/<int:pk>/live", views.live, name="purge-live"),
    path("forget/<int:pk>/drop", views.drop, name="purge-drop"),
    path("forget/<int:pk>/allow", views.allow, name="purge-allow"),
]
