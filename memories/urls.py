"""The dashboard's addresses of what is known: memories, their pages and their fragments."""

from django.urls.resolvers import URLPattern

urlpatterns: list[URLPattern] = []
