"""What a person keeps of any list: its columns and the size of its pages, and views with a name."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.views.decorators.http import require_POST

from claudeops.lib.list_view.columns import SIZE, size_of
from claudeops.lib.list_view.view import LISTS, ListView
from claudeops.lib.preferences import chosen, models
from claudeops.lib.preferences.chosen import choose_list


def _list(request: HttpRequest, name: str) -> type[ListView]:
    page = LISTS.get(name)
    if page is None:
        raise Http404
    if not request.user.has_perm(page.permission_required):
        raise PermissionDenied
    return page


def _back(name: str, query: str) -> HttpResponse:
    """Redirect to the list with a query string; one that cannot be read is dropped."""
    try:
        query = models.clean_query(query)
    except ValueError:
        query = ""
    return HttpResponseRedirect(reverse(name) + (f"?{query}" if query else ""))


@require_POST
def columns(request: HttpRequest, name: str) -> HttpResponse:
    """Store the `column`s and the `size` that the person chose; `usual` forgets them."""
    selection = set(request.POST.getlist("column"))
    names = [one.name for one in _list(request, name).columns if one.fixed or one.name in selection]
    if "usual" in request.POST:
        choose_list(request.user, name, [], SIZE)
    else:
        choose_list(request.user, name, names, size_of(request.POST.get("size", "")) or SIZE)
    return _back(name, request.POST.get("query", ""))


@require_POST
def save(request: HttpRequest, name: str) -> HttpResponse:
    """Save the list's `query` as a view under a `name`; the same name is overwritten."""
    _list(request, name)
    query = request.POST.get("query", "")
    try:
        view = chosen.save_view(request.user, name, request.POST.get("name", ""), query)
    except ValidationError as error:
        messages.error(request, f"The view is not saved. {' '.join(error.messages)}")
        return _back(name, query)
    messages.success(request, f"The view “{view.name}” is saved.")
    return _back(name, view.query)


@require_POST
def change(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Rename one of the person's own views to `name`, or with `remove` remove it."""
    _list(request, name)
    try:
        if "remove" in request.POST:
            view, message = chosen.remove_view(request.user, pk), "The view “{}” is removed."
        else:
            view = chosen.rename_view(request.user, pk, request.POST.get("name", ""))
            message = "The view is called “{}” now."
    except ValidationError as error:
        messages.error(request, f"The view keeps its name. {' '.join(error.messages)}")
    else:
        if view is None:
            messages.warning(request, "This view is not there any more.")
        else:
            messages.success(request, message.format(view.name))
    return _back(name, request.POST.get("query", ""))


urlpatterns: list[URLPattern] = [
    path("lists/<slug:name>/columns", columns, name="list-columns"),
    path("lists/<slug:name>/views", save, name="list-views"),
    path("lists/<slug:name>/views/<int:pk>", change, name="list-view"),
]
