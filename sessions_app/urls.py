"""The dashboard's addresses of what agents do: sessions, events, cooldowns, and their fragments."""

from django.urls.resolvers import URLPattern

urlpatterns: list[URLPattern] = []
