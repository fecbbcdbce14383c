"""The page on which a person chooses theme and time zone."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from claudeops.lib.preferences import models
from claudeops.lib.preferences.chosen import choose, preference_of
from claudeops.lib.preferences.models import Preference


class PreferenceForm(forms.ModelForm):
    """Theme and time zone; each of them is one of a list."""

    class Meta:
        model = Preference
        fields = ("theme", "time_zone")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = [("", "The browser's own"), *((name, name.replace("_", " ")) for name in models.zone_names())]
        self.fields["time_zone"] = forms.ChoiceField(choices=zones, required=False, label="Time zone")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Show and store the signed-in person's own preferences; another account's cannot be named."""
    preference = preference_of(request.user)
    if request.method != "POST":
        return render(request, "preferences.html", {"form": PreferenceForm(instance=preference)})
    form = PreferenceForm(request.POST, instance=Preference(user=preference.user))
    if not form.is_valid():
        return render(request, "preferences.html", {"form": form}, status=422)
    choose(request.user, **form.cleaned_data)
    messages.success(request, "Preferences saved.")
    return HttpResponseRedirect(request.path)
