"""URL patterns of the pages of purges."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.purge import views

urlpatterns: list[URLPattern] = [
    path("purges", views.purges, name="purges"),
    path("purges/<int:pk>", views.purge, name="purge"),
    path("purges/<int:pk>/live", views.live, name="purge-live"),
    path("purges/<int:pk>/drop", views.drop, name="purge-drop"),
    path("purges/<int:pk>/allow", views.allow, name="purge-allow"),
]
