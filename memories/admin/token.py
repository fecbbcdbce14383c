"""The admin of API tokens: made here with the secret shown once, revoked here; nothing else of one changes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.utils.safestring import SafeString
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from memories.access.tokens import add_token, revoke_token
from memories.adminkit import LeanAdmin
from memories.capture.text import fold
from memories.errors import InvalidToken
from memories.models import ApiToken, Scope
from memories.templatetags.claudeops import ago, badge

MEANING = {
    Scope.READ: "read: memories, sessions, events, recall",
    Scope.WRITE: "write: add, change and delete memories",
    Scope.RUN: "run: ask for sessions, stop them",
    Scope.ADMIN: "admin: all of these",
}


class TokenForm(forms.ModelForm):
    scopes = forms.MultipleChoiceField(
        choices=list(MEANING.items()),
        widget=forms.CheckboxSelectMultiple,
        help_text="Each stands alone: write does not read.",
    )

    class Meta:
        model = ApiToken
        fields = ("name", "scopes", "project")

    def clean_name(self) -> str:
        name = fold(self.cleaned_data["name"])
        if ApiToken.objects.filter(name=name).exists():
            raise ValidationError("There is a token of this name already; names are not used again.")
        return name


@admin.register(ApiToken)
class ApiTokenAdmin(LeanAdmin):
    form = TokenForm
    change_form_template = "admin/memories/apitoken/change_form.html"
    list_display = ("name", "state", "held", "within", "secret", "last_used", "made")
    list_select_related = ("project",)
    search_fields = ("name",)
    sortable_by = ("name",)
    readonly = ("name", "secret", "held", "within", "state", "last_used", "made")

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return ("name", "scopes", "project") if obj is None else self.readonly

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return () if obj is None else self.readonly

    def get_form(self, request: HttpRequest, obj: ApiToken | None = None, change: bool = False, **kwargs: Any) -> Any:
        """What is there already has nothing to fill in."""
        if obj is not None:
            kwargs["form"] = forms.ModelForm
        return super().get_form(request, obj, change, **kwargs)

    @admin.display(description="state")
    def state(self, token: ApiToken) -> SafeString:
        if token.revoked_at is None:
            return badge("active", "valid")
        return badge("inactive", f"revoked by {token.revoked_by or 'somebody'}")

    @admin.display(description="scopes")
    def held(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @admin.display(description="project")
    def within(self, token: ApiToken) -> str:
        return str(token.project) if token.project else "all"

    @admin.display(description="secret")
    def secret(self, token: ApiToken) -> str:
        return f"{token.prefix}…"

    @admin.display(description="last used")
    def last_used(self, token: ApiToken) -> str | SafeString:
        return ago(token.last_used_at) if token.last_used_at else "never"

    @admin.display(description="made")
    def made(self, token: ApiToken) -> str | SafeString:
        return ago(token.created_at)

    # -- making ---------------------------------------------------------------------------------------------------

    @sensitive_variables("secret")
    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        if change:
            return
        try:
            made, secret = add_token(obj.name, obj.scopes, by=request.user.get_username(), project=obj.project)
        except InvalidToken as error:  # another one took the name meanwhile
            raise PermissionDenied(str(error)) from error
        obj.pk = made.pk
        obj.refresh_from_db()
        request.token_secret = secret  # type: ignore[attr-defined]  # for the answer to this request, and none besides

    @sensitive_variables("secret")
    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None) -> HttpResponse:
        """The page with the secret: in this answer only. A message would be stored until it was shown."""
        secret = request.token_secret  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Token {obj.name}",
            "token": obj,
            "secret": secret,
            "opts": self.opts,
        }
        response = TemplateResponse(request, "admin/memories/apitoken/made.html", context)
        response["Cache-Control"] = "no-store"
        return response

    # -- revoking -------------------------------------------------------------------------------------------------

    actions = ("revoke_chosen",)

    @admin.action(description="Revoke", permissions=["change"])
    def revoke_chosen(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        names = list(queryset.filter(revoked_at=None).values_list("name", flat=True))
        for name in names:
            revoke_token(name, by=request.user.get_username())
        said = f"Revoked: {', '.join(names)}." if names else "They were revoked already."
        self.message_user(request, said, messages.SUCCESS if names else messages.INFO)

    def get_urls(self) -> list[URLPattern]:
        revoke = self.admin_site.admin_view(require_POST(self.revoke_view))
        return [path("<int:pk>/revoke", revoke, name="memories_apitoken_revoke"), *super().get_urls()]

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """POST: end a token."""
        token = get_object_or_404(ApiToken, pk=pk)
        if not self.has_change_permission(request, token):
            raise PermissionDenied
        revoke_token(token.name, by=request.user.get_username())
        self.message_user(request, f"Token {token.name} opens nothing any more.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:memories_apitoken_change", args=[pk]))
