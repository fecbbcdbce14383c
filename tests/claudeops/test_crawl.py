"""Every page with rows of every kind: its links, its page 2, each choice of its forms, each column and each order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from html.parser import HTMLParser
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from claudeops import roles
from claudeops.lib.list_view.export import FORMATS
from claudeops.lib.list_view.view import LISTS, ListView
from claudeops.lib.preferences.models import ListChoice
from memories.models import Change, Memory

pytestmark = pytest.mark.django_db

NUMBERS = count(1)
ELSEWHERE = ("//", "/static/", "/admin/", "/logout")
COUNTED = ("Count", "MemoryFile", "TelemetryCursor", "MemoryTerms", "Embedding", "ProjectTag")
"""How the names of models end that the database fills itself or that no page shows."""
STATE = {"observation": "Takes 60 s to start", "confidence": 0.5, "active": True}
RECEIPT_LINE = {"id": 1, "uuid": "x", "service": None, "category": "timing", "confidence": 0.9, "reason": "budget"}
VALUES: dict[str, Any] = {
    "memories.MemoryChange.before": STATE,
    "memories.MemoryChange.after": STATE | {"confidence": 0.6},
    "memories.Memory.category": "timing",
    "sessions_app.InjectionReceipt.included": [RECEIPT_LINE | {"observation": "Takes 60 s to start"}],
    "sessions_app.Session.log_file": "",
    "sessions_app.UsedMemory.memory_id": 1,
    "sessions_app.InjectionReceipt.left_out": [RECEIPT_LINE],
}


def value_of(field: models.Field[Any, Any], *, new: bool) -> Any:
    """A value that no other row has, where the field can take one; a link leads to the first row or to a `new` one."""
    number = next(NUMBERS)
    if str(field) in VALUES:
        return VALUES[str(field)]
    if field.choices:
        return next(value for value, _ in field.flatchoices if value != "")
    if isinstance(field, models.ForeignKey):
        linked = field.remote_field.model
        return (None if new else linked._base_manager.first()) or row_of(linked)
    if isinstance(field, models.DateTimeField):
        return timezone.now() - timedelta(minutes=number)
    if isinstance(field, models.CharField | models.TextField):
        return f"word-{number}"[: field.max_length]
    if isinstance(field, models.BooleanField):
        return True
    if field.has_default():
        return field.get_default()
    if isinstance(field, models.FloatField | models.DecimalField):
        return 0.5
    return timezone.now().date() if isinstance(field, models.DateField) else number


def row_of(model: type[models.Model], **fixed: Any) -> models.Model:
    """A row with every column filled, but for links to its own table and what the table's constraints exclude."""
    columns = [one for one in model._meta.concrete_fields if not (one.generated or isinstance(one, models.AutoField))]
    own = [one.name for one in columns if one.is_relation and one.remote_field.model is model]
    wanted = [one for one in columns if one.name not in (*fixed, *own)]
    bare = [one for one in wanted if not one.null]
    for fields, new in ((wanted, False), (bare, False), (bare, True)):
        with suppress(IntegrityError), transaction.atomic():
            return model._base_manager.create(**{one.name: value_of(one, new=new) for one in fields}, **fixed)
    raise AssertionError(f"no row of {model.__name__} with {fixed}")


@pytest.fixture
def rows(admin_user):
    """Of every model three rows and one for each choice of each field; lists of two rows with all their columns."""
    row_of(Memory, pk=1)  # which receipts and uses name
    for model in (model for label in roles.OWN for model in apps.get_app_config(label).get_models()):
        if model.__name__.endswith(COUNTED):
            continue
        choices = [
            (one.name, value)
            for one in model._meta.concrete_fields
            if not one.generated
            for value, _ in one.flatchoices
        ]
        for fixed in ({}, {}, {}, *({name: value} for name, value in choices)):
            row_of(model, **fixed)
    assert get_resolver().url_patterns  # whose modules declare the lists
    for name, page in LISTS.items():
        ListChoice.objects.create(
            user=admin_user, page=name, columns=",".join(one.name for one in page.columns), size=2
        )


class Links(HTMLParser):
    """The addresses that a page leads to by reading: its links, what htmx gets, each choice of each form."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.form: tuple[str, dict[str, str]] | None = None
        self.select = ""
        self.choices: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found += [given[name] for name in ("href", "hx-get") if name in given and tag != "link"]
        if tag == "form" and given.get("method", "get").lower() == "get":
            self.form, self.choices = (given.get("action", ""), {}), []
        elif self.form and tag == "select":
            self.select = given.get("name", "")
        elif self.form and tag == "option" and self.select:
            self.choices.append((self.select, given.get("value", "")))
        elif self.form and tag in ("input", "button") and given.get("name"):
            if given.get("type") in ("checkbox", "radio", "submit"):
                self.choices.append((given["name"], given.get("value", "on")))
            else:
                self.form[1][given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self.form:
            action, values = self.form
            self.found += [f"{action}?{urlencode(values | {name: value})}" for name, value in self.choices]
            self.form = None


def key_of(url: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What is asked once: the page of each row; with a query, one row's, whatever numbers and empty values it has."""
    split = urlsplit(url)
    asked = {(name, re.sub(r".*\d.*", "0", value)) for name, value in parse_qsl(split.query)}
    return re.sub(r"\d+", "0", split.path) if asked else split.path, tuple(sorted(asked))


def crawl(client: Client, starts: list[str]) -> Iterator[tuple[str, HttpResponse]]:
    """Get all that can be reached by reading; a page that was chosen in a form or a list leads to other pages only."""
    waiting, seen = deque(starts), set(map(key_of, starts))
    while waiting:
        url = waiting.popleft()
        response = client.get(url)
        yield url, response
        if response.status_code != 200 or not response.get("Content-Type", "").startswith("text/html"):
            continue
        for link in Links(response.content.decode()).found:
            to = urljoin(f"http://testserver{url}", link).partition("#")[0]
            here, there = urlsplit(url), urlsplit(to)
            path = to.removeprefix("http://testserver")
            if not path.startswith("/") or path.startswith(ELSEWHERE) or key_of(path) in seen:
                continue
            if not here.query or here.path != there.path:
                seen.add(key_of(path))
                waiting.append(path)


def choices_of(name: str, page: type[ListView]) -> Iterator[str]:
    """A list by each choice of each of its filters, in each order, and as each kind of file."""
    base = page.filterset.base_filters
    choices = [(one, value) for one in base for value, _ in base[one].extra.get("choices", ()) or ()]
    for pair in (*choices, *(("sort", key) for key in page.sorts), *(("format", kind) for kind in FORMATS)):
        yield f"{reverse(name)}?{urlencode([pair])}"


@pytest.mark.slow
def test_no_page_fails_and_each_link_leads_to_one(admin_client, rows):
    admin_client.raise_request_exception = False
    reached, faults = [], []
    starts = ["/", *(url for name, page in LISTS.items() for url in choices_of(name, page))]
    for url, response in crawl(admin_client, starts):
        reached.append(url)
        if response.streaming:
            b"".join(response.streaming_content)  # a file fails where it is written
        if response.status_code >= 400:
            faults.append((url, response.status_code))
    assert faults == []
    assert len([url for url in reached if re.search(r"[?&]after=", url)]) >= len(LISTS)
    shown = {url for url in reached if re.fullmatch(r"/memories/\d+/changes/\d+", url)}
    assert len(shown) >= len(Change)
