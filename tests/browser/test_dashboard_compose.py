"""What an agent will be told, in a real browser: it follows the task as it is typed, and the cursor stays."""

from __future__ import annotations

import pytest

from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_what_is_told_follows_the_task_as_it_is_typed(operators_window):
    project = ProjectFactory(slug="shop")
    known = {"taxonomy": "project", "project": project, "service": None, "category": "pattern"}
    MemoryFactory(**known, observation="Sessions live in Redis", confidence=0.9)
    MemoryFactory(**known, observation="The login uses cookies", confidence=0.5, tags=["login", "src/core/**"])
    page = operators_window().open("/ask?project=shop&agent=&task=")
    first = page.locator("#ask-project li .ask-text").first
    assert first.text_content() == "Sessions live in Redis"
    task = page.locator("#ask-task")
    task.click()
    page.keyboard.type("Fix the login")
    page.locator("#ask-project li", has_text="its tags match the task: login").wait_for()
    assert first.text_content() == "The login uses cookies"
    assert task.evaluate("one => one === document.activeElement")
    assert task.input_value() == "Fix the login"
    page.locator(".seg >> text=As it is sent").click()
    page.locator("#ask-prompt").wait_for()
    task.fill("Fix the logout")
    page.locator("#ask-prompt", has_text="Fix the logout").wait_for()
    page.locator("#ask-further summary").click()
    page.locator("#ask-write_scope").fill("src/core/auth/*.py")
    page.locator("#ask-prompt", has_text="- src/core/auth/*.py").wait_for()
    page.locator(".seg >> text=With reasons").click()
    page.locator("#ask-project li", has_text="src/core/**").wait_for()
