"""The admin site with claudeops's name on it."""

from django.contrib import admin


class ClaudeopsAdminSite(admin.AdminSite):
    site_header = "claudeops"
    site_title = "claudeops"
    index_title = "Everything, by kind"
