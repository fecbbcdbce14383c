"""Viewer, operator, admin: what each may do, by every route there is.

The routes are read from the URL configuration, so that a page that is added later is tried too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection
from django.http import HttpRequest, HttpResponseForbidden
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from django_q.models import Failure, Task

from claudeops import roles
from claudeops.apps import find_admin_pages
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Memory, MemoryChange, Verdict
from sessions_app.models import Agent, Event, InjectionReceipt, LogEntry, Session, Status, WorkerHeartbeat
from tests.support.factories import (
    AgentFactory,
    CooldownActionFactory,
    EventFactory,
    MemoryFactory,
    ProjectFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db

MEMORIES = "/admin/memories/memory/"
SESSIONS = "/admin/sessions_app/session/"
AGENTS = "/admin/sessions_app/agent/"
OWN = (
    "/login",
    "/logout",
    "/admin/login/",
    "/admin/logout/",
    "/admin/password_change/",
    "/healthz",
    "/readyz",
    "/preferences",
)
"""What everybody may do, with their own account."""
ACTIONS = ("delete_selected", "run_now", "run_again_action", "stop_action", "resubmit_task")
FORM = "application/x-www-form-urlencoded"
FIELDS = dict(
    parse_qsl(
        "id=1&ids=1&_selected_action=1&confirmed=1&count=1&post=yes&index=0&confidence=0.1&active=false&reason=because"
        "&seen=1&target=1&to=1&change=1&observation=Else&service=caddy&category=behavior&taxonomy=ops&tier=1&agent=1"
        "&prompt=Look.&slug=changed&name=changed&tags=&action=deactivate&all_matching=&next=/",
        keep_blank_values=True,
    )
)


@pytest.fixture
def someone(client, django_user_model):
    """Signs in a member of the house with a role."""

    def new(role: str):
        person = django_user_model.objects.create_user(f"a-{role}", password="a long password", is_staff=True)
        person.groups.add(Group.objects.get(name=role))
        client.force_login(person)
        return client

    return new


@pytest.fixture
def house():
    """One row of every kind, all of them number 1."""
    now = timezone.now()
    agent = AgentFactory(pk=1, slug="homelab-watch", runner="replay", replay_stream="house")
    session = SessionFactory(pk=1, agent=agent, status=Status.QUEUED)
    memory = MemoryFactory(pk=1, session=session)
    MemoryFactory(pk=2, verdict=Verdict.HOLD)
    MemoryChange.objects.create(pk=1, memory=memory, kind="created", actor="x", after={"observation": "Before"})
    EventFactory(pk=1, session=session)
    CooldownActionFactory(pk=1, session=session)
    ProjectFactory(pk=1)
    LogEntry.objects.create(pk=1, session=session, seq=1, at=now, kind="text", text="x", offset=0)
    InjectionReceipt.objects.create(pk=1, session=session, text="", sha256="a" * 64, budget=1, tokens=0)
    WorkerHeartbeat.objects.create(pk=1, host="nuc-1", cluster="default", pid=1)
    Failure.objects.create(id="1", name="t", func="math.sqrt", started=now, stopped=now + timedelta(1), success=False)
    with connection.cursor() as cursor:  # what is added later gets numbers of its own, on PostgreSQL too
        models = [model for label in roles.OWN for model in apps.get_app_config(label).get_models()]
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


def everything() -> dict[str, list[dict[str, object]]]:
    """Every row the house keeps, accounts and queue included."""
    models = [model for label in (*roles.OWN, *roles.OTHERS) for model in apps.get_app_config(label).get_models()]
    return {model._meta.label: list(model._base_manager.order_by("pk").values()) for model in models}


def routes(patterns: list[URLPattern | URLResolver] | None = None, before: str = "/") -> Iterator[str]:
    """Every address, with row 1 wherever a row is named, and every bulk action wherever a name is."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        here = before + re.sub(r"\\Z|[\^$\\]|\(\?P<url>\.\*\)", "", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, here)
        elif "<slug:" in here:
            yield from (re.sub(r"<\w+:\w+>", "1", re.sub(r"<slug:\w+>", name, here)) for name in BULK_ACTIONS)
        else:
            yield re.sub(r"<[\w:]+>", "1", here)


@pytest.fixture
def bare_refusals(monkeypatch):
    """Refuses without a page around it: hundreds of requests are refused here, and each page is asked for much."""

    def refuse(request: HttpRequest, exception: Exception) -> HttpResponseForbidden:
        return HttpResponseForbidden()

    monkeypatch.setattr("claudeops.urls.handler403", refuse, raising=False)


@contextmanager
def noting_writes() -> Iterator[list[str]]:
    """The statements that are not known to change nothing: reading the whole house after each request is slow."""
    reading = ("SELECT", "SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
    noted: list[str] = []

    def note(execute, sql, params, many, context):
        if not sql.lstrip().startswith(reading):
            noted.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield noted


def tries(client, url: str) -> Iterator[tuple[str, int]]:
    """Every way to ask for a change at `url`: (what was tried, the answer's status)."""

    def send(method: str, fields: dict[str, str], **headers: str) -> int:
        # Not in parts as the test client does by default, which takes as long to write and read as the rest.
        return client.generic(method, url, urlencode(fields), FORM, headers=headers).status_code

    yield "POST", send("POST", FIELDS)
    if not url.startswith("/admin/"):  # whose views know no other method
        yield "POST as DELETE", send("POST", FIELDS | {"_method": "DELETE"})
        for method in ("PUT", "DELETE"):
            yield f"htmx {method}", send(method, FIELDS, **{"HX-Request": "true"})
    if url.endswith("/bulk") or re.fullmatch(r"/admin/\w+/\w+/", url):
        with patch.object(TemplateResponse, "rendered_content", ""):  # the first POST has shown this page
            for action in (*ACTIONS, *(BULK_ACTIONS if "memories" in url else ())):
                yield action, send("POST", FIELDS | {"action": action, "all_matching": "1"})


# -- the groups --------------------------------------------------------------------------------------------------


def names(role: str) -> set[str]:
    found = Permission.objects.filter(group__name=role).values_list("content_type__app_label", "codename")
    return {f"{label}.{codename}" for label, codename in found}


def test_the_groups_are_there_after_migrating_each_with_its_own_rights():
    viewer, operator, all_of_it = (names(role) for role in (roles.VIEWER, roles.OPERATOR, roles.ADMIN))
    models = [model for label in roles.OWN for model in apps.get_app_config(label).get_models()]
    assert viewer == {f"{model._meta.app_label}.view_{model._meta.model_name}" for model in models}
    assert operator - viewer == {
        *("memories.add_memory", "memories.change_memory", "memories.delete_memory"),
        *("memories.add_project", "memories.change_project"),
        *("memories.change_proposal", "memories.change_memoryfile", "memories.change_maintenancerun"),
        *("sessions_app.run_session", "sessions_app.stop_session", "sessions_app.clear_cooldown"),
        "memories.add_journalentry",
        "sessions_app.acknowledge_event",
        "axes.view_accessattempt",
    }
    assert viewer < operator < all_of_it
    assert {"auth.change_user", "sessions_app.change_agent", "django_q.delete_failure"} <= all_of_it
    assert all_of_it.isdisjoint(roles.SUPERUSERS_ONLY)  # a schedule calls any function


def test_setting_them_up_again_changes_nothing_and_a_right_that_is_not_the_roles_is_taken(caplog):
    viewer = Group.objects.get(name=roles.VIEWER)
    own = Group.objects.create(name="night shift")
    gained = Permission.objects.get(codename="delete_memory")
    viewer.permissions.add(gained)
    own.permissions.add(gained)
    before = names(roles.OPERATOR)
    call_command("migrate", verbosity=0)
    assert "memories.delete_memory" not in names(roles.VIEWER)
    assert "1 permissions were taken from the group viewer" in caplog.text
    assert names("night shift") == {"memories.delete_memory"}
    caplog.clear()
    roles.set_up_roles()
    assert names(roles.OPERATOR) == before
    assert Group.objects.count() == 4
    assert not caplog.records


def test_setting_up_what_is_right_already_only_reads(django_assert_max_num_queries):
    with django_assert_max_num_queries(7) as seen:
        roles.set_up_roles()
    assert all(query["sql"].startswith("SELECT") for query in seen.captured_queries)


# -- every route -------------------------------------------------------------------------------------------------


def test_there_are_routes_to_try():
    found = set(routes())
    assert {"/", MEMORIES, f"{MEMORIES}1/change/", f"{MEMORIES}bulk/delete", "/sessions/1/stop"} <= found
    assert len(found) > 90


@pytest.mark.slow
def test_a_viewer_changes_nothing_by_any_route(house, someone, bare_refusals):
    client = someone(roles.VIEWER)
    before = everything()
    faults = []
    for url in sorted(set(routes()) - set(OWN)):
        with noting_writes() as noted:
            for tried, status in tries(client, url):
                if status >= 500:
                    faults.append((url, tried, status))
        if noted and everything() != before:
            pytest.fail(f"a viewer changed something at {url}")
    assert everything() == before
    assert faults == []


def test_a_viewer_sees_every_list_and_every_row(house, someone):
    client = someone(roles.VIEWER)
    find_admin_pages()
    for model in (model for label in roles.OWN for model in apps.get_app_config(label).get_models()):
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        if not admin.site.is_registered(model):
            continue
        row = [f"{base}1/change/"] if model._base_manager.filter(pk=1).exists() else []
        for url in (base, *row):
            response = client.get(url)
            assert response.status_code == 200, url
            html = response.content.decode()
            assert 'class="addlink"' not in html, url
            assert 'name="_save"' not in html, url
            assert 'class="deletelink"' not in html, url
            assert 'name="action"' not in html, url
            assert not re.search(r'<form method="post" action="/admin/', html), url


@pytest.mark.one_database
def test_an_operator_changes_no_account_no_agent_and_no_queue(house, someone, bare_refusals):
    client = someone(roles.OPERATOR)
    labels = ("auth.User", "auth.Group", "auth.Permission", "sessions_app.Agent", "memories.Project")
    all_before = everything()
    before = {label: all_before[label] for label in labels}
    kept = Task.objects.count()
    for url in ("/admin/auth/user/", "/admin/django_q/failure/", "/admin/django_q/schedule/add/", f"{AGENTS}add/"):
        assert client.get(url).status_code == 403, url
    for url in sorted(set(routes()) - set(OWN)):
        if (
            url.startswith(("/admin/auth/", "/admin/django_q/", AGENTS, "/admin/memories/project/"))
            and "run" not in url
        ):
            for _ in tries(client, url):
                pass
    after = everything()
    assert {label: after[label] for label in labels} == before
    assert Task.objects.count() == kept


# -- what an operator does ---------------------------------------------------------------------------------------


def test_an_operator_curates_in_the_admin(house, someone):
    client = someone(roles.OPERATOR)
    text = "observation=Takes 90 s to start&service=caddy&category=timing&confidence=0.9&tags=&reason=&taxonomy=ops"
    form = dict(parse_qsl(text, keep_blank_values=True))
    assert client.post(f"{MEMORIES}add/", form).status_code == 302
    assert client.post(f"{MEMORIES}1/change/", form | {"service": "jellyfin"}).status_code == 302
    assert Memory.objects.get(pk=1).observation == "Takes 90 s to start"
    assert client.post("/memories/2/approve").status_code == 302
    assert Memory.objects.get(pk=2).verdict == Verdict.ALLOW
    client.post(MEMORIES, {"action": "deactivate", "_selected_action": ["1", "2"], "index": "0"})
    assert not Memory.objects.filter(pk__in=(1, 2), active=True).exists()
    assert client.post(f"{MEMORIES}1/delete/", {"post": "yes"}).status_code == 302
    assert not Memory.objects.filter(pk=1).exists()
    assert set(MemoryChange.objects.exclude(pk=1).values_list("actor", flat=True)) == {"a-operator"}


def test_an_operator_runs_and_stops(house, someone):
    client = someone(roles.OPERATOR)
    client.post(SESSIONS, {"action": "stop", "_selected_action": ["1"], "index": "0"})
    assert Session.objects.get(pk=1).status == Status.STOPPED
    client.post(SESSIONS, {"action": "run_again", "_selected_action": ["1"], "index": "0"})
    Session.objects.filter(status=Status.QUEUED).update(status=Status.COMPLETED)
    client.post(AGENTS, {"action": "run_now", "_selected_action": ["1"], "index": "0"})
    assert Session.objects.filter(requested_by="a-operator").count() >= 2


def test_an_admin_manages_accounts_and_agents(house, someone, django_user_model):
    client = someone(roles.ADMIN)
    for url in ("/admin/auth/user/", "/admin/auth/group/", "/admin/django_q/failure/", f"{AGENTS}add/"):
        assert client.get(url).status_code == 200, url
    password = "another long password"
    made = {"username": "night", "usable_password": "true", "password1": password, "password2": password}
    assert client.post("/admin/auth/user/add/", made).status_code == 302
    assert django_user_model.objects.filter(username="night").exists()
    assert client.post(f"{AGENTS}1/delete/", {"post": "yes"}).status_code == 302
    assert not Agent.objects.exists()
    assert Event.objects.count() == 1


def test_whoever_may_only_look_at_failed_tasks_cannot_run_them_again(house, client, django_user_model):
    person = django_user_model.objects.create_user("curious", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_failure"))
    client.force_login(person)
    assert client.get("/admin/django_q/failure/").status_code == 200
    client.post("/admin/django_q/failure/", {"action": "resubmit_task", "_selected_action": ["1"], "index": "0"})
    assert Failure.objects.filter(pk="1").exists()


def test_a_role_opens_nothing_to_whoever_is_not_staff(client, stranger):
    stranger.groups.add(Group.objects.get(name=roles.ADMIN))
    client.force_login(stranger)
    assert client.get("/").status_code == 403
    assert client.get(MEMORIES).status_code == 403
