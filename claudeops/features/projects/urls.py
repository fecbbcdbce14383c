"""URL patterns of the projects' pages."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.features.projects import views

urlpatterns: list[URLPattern] = [
    path("projects", views.projects, name="projects"),
    path("projects/<slug:slug>", views.project, name="project"),
    path("projects/<slug:slug>/settings", views.settings, name="project-settings"),
    path("projects/<slug:slug>/review", views.review, name="project-review"),
    path("memory-review", views.review, name="memory-review"),
    path("projects/<slug:slug>/memories", views.add, name="project-add"),
    path("projects/<slug:slug>/memories/<int:pk>/<slug:verb>", views.act, name="project-act"),
    path("projects/<slug:slug>/bulk", views.bulk, name="project-bulk"),
]
