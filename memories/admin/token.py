"""The admin of API tokens: create one (its secret is shown once) and revoke some."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from claudeops.lib.admin_lists import ListAdmin
from memories.access import add_token, revoke_token
from memories.capture.text import fold
from memories.errors import InvalidToken
from memories.models import ApiToken, Scope

MEANING = {
    Scope.READ: "read: memories, sessions, events, recall",
    Scope.REVIEW: "review: texts that wait for review",
    Scope.WRITE: "write: add, change and delete memories",
    Scope.RUN: "run: run and stop sessions",
    Scope.HOOK: "hook: answer the hooks of the Claude Code CLI",
    Scope.ADMIN: "admin: all of these",
}


class TokenForm(forms.ModelForm):
    scopes = forms.MultipleChoiceField(
        choices=list(MEANING.items()),
        widget=forms.CheckboxSelectMultiple,
        help_text="Scopes are independent: write does not include read.",
    )

    class Meta:
        model = ApiToken
        fields = ("name", "scopes", "project", "max_tier", "expires_at")

    def clean_expires_at(self) -> datetime | None:
        ends: datetime | None = self.cleaned_data["expires_at"]
        if ends is not None and ends <= timezone.now():
            raise ValidationError("This is in the past.")
        return ends

    def clean_name(self) -> str:
        name = fold(self.cleaned_data["name"])
        if ApiToken.objects.filter(name=name).exists():
            raise ValidationError("A token of this name exists already; names are not used again.")
        return name


@admin.register(ApiToken)
class ApiTokenAdmin(ListAdmin):
    form = TokenForm
    list_display = (
        *("name", "scopes", "project", "max_tier", "secret", "last_used_at"),
        *("created_at", "expires_at", "revoked_at", "revoked_by"),
    )
    list_select_related = ("project",)
    search_fields = ("name",)
    sortable_by = ("name",)
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return TokenForm.Meta.fields if obj is None else self.list_display

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return () if obj is None else self.list_display

    def get_form(self, request: HttpRequest, obj: ApiToken | None = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is not None:
            kwargs["form"] = forms.ModelForm
        return super().get_form(request, obj, change, **kwargs)

    @admin.display(description="secret")
    def secret(self, token: ApiToken) -> str:
        return f"{token.prefix}…"

    @sensitive_variables("secret")
    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        if change:
            return
        try:
            fields = {name: getattr(obj, name) for name in ("project", "max_tier", "expires_at")}
            token, secret = add_token(obj.name, obj.scopes, by=request.user.get_username(), **fields)
        except InvalidToken as error:  # somebody took the name meanwhile
            raise PermissionDenied(str(error)) from error
        obj.pk = token.pk
        obj.refresh_from_db()
        request.token_secret = secret  # type: ignore[attr-defined]  # for the answer to this request only

    @sensitive_variables("secret")
    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret in this response only: a message would be stored until it is shown."""
        secret = request.token_secret  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Token {obj.name} created",
            "token": obj,
            "secret": secret,
            "opts": self.opts,
        }
        response = TemplateResponse(request, "admin/memories/apitoken/made.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        names = list(queryset.filter(revoked_at=None).values_list("name", flat=True))
        for name in names:
            revoke_token(name, by=request.user.get_username())
        message = f"Revoked: {', '.join(names)}." if names else "They are revoked already."
        self.message_user(request, message, messages.SUCCESS if names else messages.INFO)
