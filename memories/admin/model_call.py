"""The admin of model calls: what claudeops asked models itself, what it cost and how it ended, read-only."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter, value_filter
from memories.models import ModelCall
from memories.templatetags.claudeops import NONE, dollars, milliseconds


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = ("of_role", "of_model", "outcome", "tokens", "cost", "duration", "asked_at", "error")
    list_filter = (value_filter("role"), "outcome", age_filter("asked_at", "when"))
    sortable_by = ("asked_at",)

    @admin.display(description="role")
    def of_role(self, call: ModelCall) -> SafeString:
        return format_html('<span class="nowrap">{}</span>', call.role)

    @admin.display(description="model")
    def of_model(self, call: ModelCall) -> str:
        return f"{call.backend}:{call.model_used or call.model}"

    @admin.display(description="tokens in, out")
    def tokens(self, call: ModelCall) -> str | SafeString:
        found = (call.tokens_in, call.tokens_out)
        return NONE if found == (None, None) else ", ".join(f"{number or 0:,}" for number in found)

    @admin.display(description="cost")
    def cost(self, call: ModelCall) -> str | SafeString:
        return dollars(call.cost_usd)

    @admin.display(description="duration")
    def duration(self, call: ModelCall) -> str | SafeString:
        return milliseconds(call.duration_ms)
