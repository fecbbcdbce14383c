"""The timeline and the log's tools in a real browser: screens, folds, links to lines, without JavaScript."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sessions_app.models import LogEntry, Session, Status
from tests.sessions_app.log.test_timeline import START, long_log
from tests.support.factories import SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def session(operator: Any) -> Session:
    one = SessionFactory(status=Status.FAILED, started_at=START, ended_at=START + timedelta(seconds=60))
    long_log(one, 400)
    LogEntry.objects.filter(session=one, seq=1190).update(text="NAMES\njellyfin\ncaddy", kind="tool_result")
    return one


def test_the_pages_fit_every_screen_and_have_no_barrier(window, operator, session, axe):
    one = window()
    one.enter(operator)
    findings, wide = [], []
    for path in ("", "?timeline=errors", "?kind=errors&q=x", "?line=41#line-41", "/log?kind=calls"):
        one.open(f"/sessions/{session.pk}{path}")
        for width in (1440, 390):
            one.show(width, width == 390)
            if width == 1440 or not path:  # a long log takes seconds, and what is below the timeline stays
                findings += one.findings(axe)
            if one.sideways > 0:
                wide.append((path, width))
    assert findings == []
    assert wide == []


def test_folds_open_lines_are_linked_and_slash_goes_to_the_search(window, operator, session):
    one = window()
    one.enter(operator)
    page = one.open(f"/sessions/{session.pk}")
    folded = page.locator(".folded-rows")
    assert not folded.is_visible()
    page.focus(".fall summary")
    page.keyboard.press("Enter")
    assert folded.is_visible()
    page.click("#log-unfold")
    assert page.locator("#log-lines details:not([open])").count() == 0
    page.click("#log-unfold")
    assert page.locator("#log-lines details[open]").count() == 0
    with page.expect_navigation():
        page.locator("#line-1150 .log-number").click()
    assert page.url.endswith(f"/sessions/{session.pk}?line=1150#line-1150")
    assert "is-line" in page.get_attribute("#line-1150", "class")
    one.open(f"/sessions/{session.pk}#line-41")
    page.wait_for_url("**?line=41#line-41")
    page.wait_for_selector("#line-41.is-line")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "log-q"


def test_without_javascript_folds_kinds_search_and_lines_work(window, operator, session):
    one = window(java_script_enabled=False)
    one.enter(operator)
    page = one.open(f"/sessions/{session.pk}")
    page.click(".fall summary")
    assert page.locator(".folded-rows").is_visible()
    with page.expect_navigation():
        page.click("#log-kind-errors")
    assert page.locator("#log-lines > li.is-bad").count() == 40
    page.fill("#log-q", "nothing of this")
    with page.expect_navigation():
        page.press("#log-q", "Enter")
    assert "No lines with" in page.text_content("#log-lines")
    one.open(f"/sessions/{session.pk}?line=41")
    assert page.locator("#line-41.is-line").count() == 1


def test_a_running_session_is_followed_in_a_restricted_log(window, operator):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    long_log(session, 3)
    one = window()
    one.enter(operator)
    page = one.open(f"/sessions/{session.pk}?kind=text")
    assert page.locator("#log-lines > li[id^='line-']").count() == 3
    now = timezone.now()
    LogEntry.objects.create(session=session, seq=10, at=now, kind="tool_use", text="Bash: a", offset=0, turn=4)
    LogEntry.objects.create(session=session, seq=11, at=now, kind="text", text="New.", offset=0, turn=4)
    page.wait_for_selector("#line-11")
    assert page.locator("#line-10").count() == 0
    assert "Text 4" in page.text_content("#log-kinds")
