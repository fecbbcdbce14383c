"""What all lists share: choosing columns, and saving, renaming and removing views."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from claudeops.lib.list_page.columns import SIZE, size_of
from claudeops.lib.list_page.page import PAGES, ListPage
from claudeops.lib.preferences import chosen, models
from claudeops.lib.preferences.chosen import choose_list


def _page(request: HttpRequest, name: str) -> ListPage:
    page = PAGES.get(name)
    if page is None:
        raise Http404
    if not request.user.has_perm(page.permission):
        raise PermissionDenied
    return page


def _back(page: ListPage, query: str) -> HttpResponse:
    """Redirect to the list with a query string; one that cannot be read is dropped."""
    try:
        query = models.clean_query(query)
    except ValueError:
        query = ""
    return HttpResponseRedirect(reverse(page.name) + (f"?{query}" if query else ""))


@require_POST
def columns(request: HttpRequest, page: str) -> HttpResponse:
    """Store the `column`s and the `size` that the person chose; `usual` forgets them."""
    found = _page(request, page)
    given = set(request.POST.getlist("column"))
    names = [one.name for one in found.columns if one.fixed or one.name in given]
    size = size_of(request.POST.get("size", "")) or SIZE
    usual = "usual" in request.POST
    choose_list(request.user, page, [] if usual else names, SIZE if usual else size)
    return _back(found, request.POST.get("query", ""))


@require_POST
def views(request: HttpRequest, page: str) -> HttpResponse:
    """Save the list's `query` as a view under a `name`; the same name is overwritten."""
    found = _page(request, page)
    query = request.POST.get("query", "")
    try:
        view = chosen.save_view(request.user, page, request.POST.get("name", ""), query)
    except ValidationError as error:
        messages.error(request, f"The view is not saved. {' '.join(error.messages)}")
        return _back(found, query)
    messages.success(request, f"The view “{view.name}” is saved.")
    return _back(found, view.query)


@require_POST
def view(request: HttpRequest, page: str, pk: int) -> HttpResponse:
    """Rename one of the person's own views to `name`, or with `remove` remove it."""
    found = _page(request, page)
    query = request.POST.get("query", "")
    if "remove" in request.POST:
        gone = chosen.remove_view(request.user, pk)
        if gone is None:
            messages.warning(request, "This view is not there any more.")
        else:
            messages.success(request, f"The view “{gone.name}” is removed.")
        return _back(found, query)
    try:
        renamed = chosen.rename_view(request.user, pk, request.POST.get("name", ""))
    except ValidationError as error:
        messages.error(request, f"The view keeps its name. {' '.join(error.messages)}")
        return _back(found, query)
    if renamed is None:
        messages.warning(request, "This view is not there any more.")
    else:
        messages.success(request, f"The view is called “{renamed.name}” now.")
    return _back(found, query)
